"""What the server and the application agree on beyond WSGI (PEP 3333)."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

PEER_ADMITTED = "agents9.peer_admitted"
"""In the environment: whether the listener knows the client as one who may read."""

PEER = "agents9.peer"
"""In the environment: what a client is counted by; "" is one that is admitted."""

STRANGER = "agents9.stranger"
"""In the environment: the Unauthenticated client that a client is which is not admitted, else None."""

MAX_BODY_BYTES = 64 * 1024
"""What a request body may have: one that names properties is far smaller, and others mean nothing here.

`wsgi.input` holds at most one byte more, by which the application sees that there was more.
"""

CONTESTED = "agents9.contested_names"
"""In the environment: names of this server that another user's server shares; they are not answered to."""

WAKE = "agents9.wake"
"""In the environment: a function that ends a Pause of the answer; any thread may call it, at any time.

A call that comes while the answer is not in a pause ends the next one at once.
"""


class RemoteClient:
    """A client that is not admitted, on one of its connections.

    *name* is what it is counted by; None is nobody, who is on this machine and cannot be named.
    """

    def __init__(self, name: str | None, is_there: Callable[[], bool]) -> None:
        self.name = name
        self.is_there = is_there
        """Tells whether the client still waits for an answer."""
        self.proof = b""
        """What `password` remembers the client by, once it was let in on this connection."""


class Pause(bytes):
    """An empty chunk of a body: there is nothing to say until WAKE is called, or *seconds* have passed.

    No thread waits meanwhile. When the client has left, the body is closed in its pause.
    """

    seconds: float

    def __new__(cls, seconds: float) -> "Pause":
        made = super().__new__(cls)
        made.seconds = seconds
        return made


def request_uri(environ: dict[str, Any]) -> str:
    """Return the request target as it was sent; of a server that does not hand it on, as it can be told."""
    uri: str | None = environ.get("REQUEST_URI")
    if uri is not None:
        return uri
    path = environ.get("SCRIPT_NAME", "") + environ["PATH_INFO"]
    query = environ.get("QUERY_STRING", "")
    return quote(path, encoding="latin-1") + (f"?{query}" if query else "")
