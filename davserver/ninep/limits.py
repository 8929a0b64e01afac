"""The limits of a conversation, each with its reason."""

MAX_MSIZE = (1 << 20) + 24
"""A read of 1 MiB and the 24 bytes that clients keep for its header (IOHDRSZ). v9fs asks for 131072."""
MIN_MSIZE = 1024
"""Holds an Rwalk of 16 qids, and the stat of a name of 255 bytes that are all percent-escaped."""
FIRST_MSIZE = 8192
"""How long a message may be before a size is agreed on; only a Tversion is of use then."""
MAX_FIDS = 300_000
"""A cache=loose mount keeps one fid a file, and a chat may have 262144 messages."""
READ_HEADER_BYTES = 11
"""size[4] Rread tag[2] count[4]: what a reply's data leaves room for in msize (also in Rreaddir)."""
MAX_OFFSET = (1 << 63) - 1
"""Where every file has ended: file offsets are signed."""
