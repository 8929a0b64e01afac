"""What the listener and the application agree on beyond WSGI (PEP 3333)."""

PEER_ADMITTED = "agents9.peer_admitted"
"""In the environment: whether the listener knows the client as one who may read."""

PEER = "agents9.peer"
"""In the environment: what is known of a client that is not admitted, by which its failures are counted."""

MAX_BODY_BYTES = 64 * 1024
"""What a request body may have: one that names properties is far smaller, and others mean nothing here.

`wsgi.input` holds at most one byte more, by which the application sees that there was more.
"""

WAKE = "agents9.wake"
"""In the environment: a function that ends a Pause of the answer; any thread may call it, at any time.

A call that comes while the answer is not in a pause ends the next one at once.
"""


class Pause(bytes):
    """An empty chunk of a body: there is nothing to say until WAKE is called, or *seconds* have passed.

    The worker is free meanwhile. When the client has left, the body is closed in its pause.
    """

    seconds: float

    def __new__(cls, seconds: float) -> "Pause":
        made = super().__new__(cls)
        made.seconds = seconds
        return made
