"""What the HTTP server allows its clients: every time, size and number, each with its reason."""

from typing import NamedTuple


class Limits(NamedTuple):
    """The times that a connection may take, in seconds."""

    handshake_seconds: float = 10
    """Until a client speaks TLS."""
    idle_seconds: float = 30
    """Without a byte between requests, or before the first."""
    request_seconds: float = 5
    """For a request to arrive, from its first byte; then it is answered 408."""
    stall_seconds: float = 600
    """Without taking any of a response: a pager that is left alone for less loses no byte."""
    linger_seconds: float = 2
    """For what a client still sends to be read away; to close before could undo the response (RFC 9112
    section 9.6)."""


MAX_HEADER_BYTES = 65536
RECEIVE_BYTES = 65536
BACKLOG = 1024
"""A client that finds it full asks again after a second: with 5 every 100th of 32, and with 128 each client
that comes while 500 others do."""
UNSENT_BYTES = 256 * 1024
"""What the kernel keeps of a response beyond what is on its way; else some MB for each client that stalls."""
FREE_PORT_TRIES = 8
"""For a port that is free in both families."""
ACCEPT_PAUSE_SECONDS = 0.5
"""After an accept that failed, for want of a descriptor."""
ACCEPTED_AT_ONCE = 32
"""In one look of the loop, between which are at most 64 turns."""
STOP_GRACE_SECONDS = 1.0
"""What is being sent when the server stops may go on for this long."""
STOP_LOOK_SECONDS = 0.01
