"""What the listener and the application agree on beyond WSGI (PEP 3333)."""

PEER_ADMITTED = "agents9.peer_admitted"
"""In the environment: whether the listener knows the client as one who may read."""

PEER = "agents9.peer"
"""In the environment: what is known of a client that is not admitted, by which its failures are counted."""

MAX_BODY_BYTES = 64 * 1024
"""What a request body may have: one that names properties is far smaller, and others mean nothing here.

`wsgi.input` holds at most one byte more, by which the application sees that there was more.
"""
