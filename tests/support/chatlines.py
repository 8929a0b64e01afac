"""Lines of transcripts, and what a chat shows of them."""

import json

from msgspec.structs import replace

from agents9core.chat.decoder import ChatDecoder, read_object
from agents9core.chat.index import ChatIndex
from agents9core.chat.markdown import PROSE
from agents9core.chat.render import cut, make, measure, render


def line(**fields: object) -> bytes:
    """Return one object as a harness writes it, without its newline."""
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def index_of(read: ChatDecoder, data: bytes, birth_ns: int = 0) -> ChatIndex:
    """Index a whole transcript, every line of which ends."""
    index = ChatIndex(read, birth_ns)
    at = 0
    for one in data.split(b"\n")[:-1]:
        index.add_line(one, at)
        at += len(one) + 1
    return index


def shown(read: ChatDecoder, *lines: bytes) -> list[tuple[str, str]]:
    """Return the kind and the text of each message, read back from the lines by every way there is.

    The ways say the same, or this fails.
    """
    data = b"".join(one + b"\n" for one in lines)
    index = index_of(read, data)
    return [(index.kind(id_), text_of(index, id_, data)) for id_ in range(len(index))]


def text_of(index: ChatIndex, id_: int, data: bytes) -> str:
    """Read a message back from the transcript that it was found in."""
    location = index.location(id_)
    source = data[location.at : location.at + location.length]
    record = read_object(source, index.read)
    raw = read_object(source, lambda data, _=True: index.read(data, True))
    assert record is not None
    assert raw is not None
    assert replace(record, messages=[]) == replace(raw, messages=[])
    said, said_raw = record.messages[location.ordinal], raw.messages[location.ordinal]
    assert replace(said, parts=[]) == replace(said_raw, parts=[])
    text = render(said.parts)
    assert render(said_raw.parts) == text
    is_prose = said.role in PROSE
    segments, extent, _ = cut(said_raw.parts, source, is_prose)
    assert extent == measure(said.parts, is_prose) == measure(said_raw.parts, is_prose)
    assert extent[0] == location.size == len(text)
    joined = (
        segment.literal or make(segment.how, source[segment.at :][: segment.length]) for segment in segments
    )
    assert b"".join(joined) == text
    return text.decode()
