"""The nodes of a chat: names, looks, bytes, and when they are Gone."""

import os
import random
import threading
import time

import pytest

from agents9core.chat import index as index_module
from agents9core.chat import render as render_module
from agents9core.chat import snapshots as standing_module
from agents9core.chat.decoder import ChatFormat
from agents9core.chat.fingerprint import Change
from agents9core.chat.transcript import Transcripts
from agents9core.errors import Gone, NotFound, TooLarge, Unavailable
from agents9core.files.root import Root
from agents9core.harness.claude import chat as claude_chat
from agents9core.identity import PathNumbers
from agents9core.session import Session, Source
from agents9core.tree import chat_dir as chat_module
from agents9core.tree.chat_dir import ChatDirectory, TranscriptFile
from agents9core.tree.context import TreeContext
from agents9core.tree.handle import PinnedTranscript, SessionHandle
from tests.support.chatlines import line


def said(text, **fields):
    return line(type="user", message={"content": text}, **fields) + b"\n"


def called(id_, name="Bash", **given):
    block = {"type": "tool_use", "id": id_, "name": name, "input": given}
    return line(type="assistant", message={"content": [block]}) + b"\n"


def result(id_, content="ok"):
    block = {"type": "tool_result", "tool_use_id": id_, "content": content}
    return line(type="user", message={"content": [block]}) + b"\n"


class MadeHandle(SessionHandle):
    """A handle whose session is what the test says."""

    def __init__(self, path, budget_bytes=64 << 20):
        numbers = PathNumbers()
        self.context = TreeContext(numbers, Transcripts(numbers, budget_bytes))
        self.chat_format = ChatFormat(claude_chat.read)
        self.key = ("made", 1)
        self.started_ns = 77
        self.path = path / "t.jsonl"
        self.root = Root(str(path))
        self.id = "s1"
        self.names = [self.path.name]

    def session(self):
        if self.id is None:
            raise Gone("ended")
        return Session(
            "registry", id=self.id, sources=tuple(Source(self.root, (name,)) for name in self.names)
        )

    def chat(self):
        return ChatDirectory(self, self.held(), self.id)

    def held(self):
        snapshot = self.snapshot(scan=False)
        return PinnedTranscript(self, snapshot.transcript, snapshot.generation) if snapshot else None

    def write(self, *lines):
        self.path.write_bytes(b"".join(lines))

    def append(self, *lines):
        with open(self.path, "ab") as file:
            file.write(b"".join(lines))


@pytest.fixture
def handle(tmp_path):
    return MadeHandle(tmp_path)


def names(chat):
    return [row.name for row in chat.members()]


def read(node, count=1 << 20):
    reader, data = node.open(), b""
    while more := reader.read(len(data), count):
        data += more
    return data


def tick():
    """Let the file system's clock go on."""
    time.sleep(0.03)


# Names


def test_a_message_is_named_by_its_place_and_kind(handle):
    handle.write(said("a"), called("t"), result("t"), line(type="system", content="c") + b"\n")
    assert names(handle.chat()) == [
        "00000000-user",
        "00000001-bash",
        "00000002-bash-result",
        "00000003-system",
    ]


def test_every_name_that_is_listed_opens(handle):
    handle.write(said("a"), called("t", "mcp__x__Do/It"), result("t"), called("u", "User"), result("u"))
    chat = handle.chat()
    for row in chat.members():
        node = chat.walk(row.name)
        assert (node.name, node.stat()) == (row.name, row.stat)
        assert len(read(node)) == row.stat.length


@pytest.mark.parametrize(
    "name",
    [
        "0-user",
        "000000000-user",
        "0000000-user",
        "00000000",
        "00000000-",
        "00000000-assistant",
        "00000000-User",
        "00000000-user ",
        "00000000-user-result",
        "00000000user",
        "+0000000-user",
        " 0000000-user",
        "0000000\u0660-user",
        "\u0660\u0660\u0660\u0660\u0660\u0660\u0660\u0660-user",
        "00000001-user",
        "99999999-user",
        "-0000001-user",
        "",
        ".",
        "..",
        "0",
        "user",
        "00000000-user\n",
    ],
)
def test_a_name_has_one_spelling(handle, name):
    handle.write(said("a"))
    with pytest.raises(NotFound):
        handle.chat().walk(name)


def test_names_do_not_change_as_the_transcript_grows(handle):
    handle.write(said("a"), said("b"))
    chat = handle.chat()
    before = list(chat.members())
    handle.append(said("c"), b"rubbish\n", said("d"))
    assert list(chat.members())[: len(before)] == before
    assert len(chat.members()) == 4


# Listings


def test_a_listing_is_a_snapshot(handle):
    handle.write(said("a"))
    chat = handle.chat()
    members = chat.members()
    handle.append(said("b"))
    chat.members()
    assert [row.name for row in members] == ["00000000-user"]
    assert len(members) == 1


def test_rows_come_by_number_and_by_slice(handle):
    handle.write(*(said(str(number)) for number in range(5)))
    members = handle.chat().members()
    rows = list(members)
    assert members[-1] == rows[4]
    assert members[1:3] == rows[1:3]
    assert members[::2] == rows[::2]
    assert members[3:99] == rows[3:]


def test_there_is_no_row_past_the_last(handle):
    handle.write(said("a"))
    with pytest.raises(IndexError):
        handle.chat().members()[1]


def test_a_long_listing_is_handed_over_in_slices(handle, monkeypatch):
    monkeypatch.setattr(chat_module, "_SLICE", 2)
    handle.write(*(said(str(number)) for number in range(5)))
    assert len(list(handle.chat().members())) == 5


def test_a_listing_names_its_transcript(handle):
    handle.write(said("a"))
    chat = handle.chat()
    before = chat.members().transcript
    handle.append(said("b"))
    assert chat.members().transcript == before
    tick()
    handle.write(said("c"))
    assert handle.chat().members().transcript != before


# Looks


def test_a_message_is_as_old_as_its_record(handle):
    handle.write(said("a", timestamp="1970-01-01T00:00:05Z"), said("b"))
    chat = handle.chat()
    assert [row.stat.mtime_ns for row in chat.members()] == [5 * 10**9] * 2
    assert chat.stat().mtime_ns == 5 * 10**9


def test_a_directory_is_as_new_as_its_newest_member(handle):
    handle.write(said("a", timestamp="1970-01-01T00:00:05Z"), said("b", timestamp="1970-01-01T00:00:02Z"))
    assert handle.chat().stat().mtime_ns == 5 * 10**9


def test_the_directorys_version_moves_with_its_members(handle):
    handle.write(said("a"))
    chat = handle.chat()
    before = chat.stat()
    handle.append(line(type="system") + b"\n")
    assert chat.stat() == before
    handle.append(said("b"))
    assert (chat.stat().path, chat.stat().version) == (before.path, before.version + 1)


def test_a_message_never_changes(handle):
    handle.write(said("a"))
    node = handle.chat().walk("00000000-user")
    before = node.stat()
    handle.append(said("b"))
    assert node.stat() == before


def test_every_node_has_a_number_of_its_own(handle):
    handle.write(said("a"), said("b"))
    chat = handle.chat()
    nodes = [chat, chat.walk("00000000-user"), chat.walk("00000001-user"), TranscriptFile(handle.held())]
    assert len({node.stat().path for node in nodes}) == 4


def test_two_handles_share_messages_but_not_directories(handle):
    handle.write(said("a"))
    other = MadeHandle(handle.path.parent)
    other.context, other.key = handle.context, ("made", 2)
    message = "00000000-user"
    assert handle.chat().walk(message).stat() == other.chat().walk(message).stat()
    assert handle.chat().stat().path != other.chat().stat().path


def test_an_index_dropped_for_room_and_made_again_gives_the_same(tmp_path):
    handle = MadeHandle(tmp_path, budget_bytes=1)
    handle.write(said("a"), said("b"))
    chat = handle.chat()
    node, before = chat.walk("00000001-user"), (list(chat.members()), chat.stat())
    reader = node.open()
    (tmp_path / "other").write_bytes(said("c"))
    other = Session("test", sources=(Source(handle.root, ("other",)),))
    handle.context.transcripts.snapshot(other, claude_chat.read)
    assert (list(chat.members()), chat.stat()) == before
    assert (node.stat(), reader.read(0, 9)) == (before[0][1].stat, b"b\n")


# Sessions that have no transcript yet


def test_a_session_without_a_file_has_an_empty_chat(handle):
    chat = handle.chat()
    assert (len(chat.members()), list(chat.members())) == (0, [])
    assert (chat.stat().length, chat.stat().mtime_ns, chat.stat().version) == (0, 77, 1)
    with pytest.raises(NotFound):
        chat.walk("00000000-user")


def test_there_is_no_row_in_an_empty_chat(handle):
    with pytest.raises(IndexError):
        handle.chat().members()[0]


def test_a_session_that_knows_no_file_has_an_empty_chat(handle):
    handle.names = []
    assert names(handle.chat()) == []


def test_an_empty_chat_is_gone_when_the_transcript_appears(handle):
    chat = handle.chat()
    before = chat.stat().path
    handle.write(said("a"))
    with pytest.raises(Gone):
        chat.members()
    assert names(handle.chat()) == ["00000000-user"]
    assert handle.chat().stat().path != before


def test_an_empty_chat_is_gone_when_the_session_is_another(handle):
    chat = handle.chat()
    handle.id = "s2"
    with pytest.raises(Gone):
        chat.stat()


def test_a_harness_that_is_not_read_has_an_empty_chat(handle):
    handle.chat_format = None
    handle.write(said("a"))
    chat = handle.chat()
    assert (names(chat), chat.stat().version) == ([], 1)
    with pytest.raises(NotFound):
        chat.walk("00000000-user")


# Gone


def cleared(handle):
    (handle.path.parent / "next.jsonl").write_bytes(said("next"))
    handle.id, handle.names = "s2", ["next.jsonl"]


def ended(handle):
    handle.id = None


def deleted(handle):
    handle.path.unlink()


def truncated(handle):
    os.truncate(handle.path, 3)


def replaced(handle):
    handle.path.with_name("beside").write_bytes(handle.path.read_bytes())
    handle.path.with_name("beside").rename(handle.path)


def rewritten(handle):
    tick()
    handle.write(handle.path.read_bytes().replace(b"one", b"ONE"))


def a_fifo_in_its_place(handle):
    handle.path.unlink()
    os.mkfifo(handle.path)


def a_link_in_its_place(handle):
    handle.path.rename(handle.path.with_name("real"))
    handle.path.symlink_to("real")


def a_directory_in_its_place(handle):
    handle.path.unlink()
    handle.path.mkdir()


CHANGES = [
    cleared,
    ended,
    deleted,
    truncated,
    replaced,
    rewritten,
    a_fifo_in_its_place,
    a_link_in_its_place,
    a_directory_in_its_place,
]
LONG = said("long" * 200)


@pytest.fixture
def held_nodes(handle, monkeypatch):
    """Everything that a client can hold of a chat, each as the operation that looks again."""
    monkeypatch.setattr(index_module, "LONG", 500)
    handle.write(said("one"), LONG)
    chat, transcript = handle.chat(), TranscriptFile(handle.held())
    short, long = chat.walk("00000000-user"), chat.walk("00000001-user")
    readers = [node.open() for node in (short, long, transcript)]
    return [
        chat.stat,
        chat.members,
        lambda: chat.walk("00000000-user"),
        *(node.stat for node in (short, long, transcript)),
        *(node.open for node in (short, long, transcript)),
        *((lambda reader=reader: reader.read(0, 10)) for reader in readers),
    ]


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_held_of_another_transcript_is_gone(handle, held_nodes, change):
    change(handle)
    for operation in held_nodes:
        with pytest.raises(Gone):
            operation()


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_gone_stays_gone(handle, held_nodes, change):
    change(handle)
    for _ in range(2):
        with pytest.raises(Gone):
            held_nodes[0]()


def test_growth_is_nobodys_end(handle, held_nodes):
    handle.append(said("more"))
    for operation in held_nodes:
        operation()


# Bytes


def test_a_message_is_read_to_its_size_and_no_further(handle):
    handle.write(said("caf\u00e9"))
    node = handle.chat().walk("00000000-user")
    reader, size = node.open(), node.stat().length
    assert reader.read(0, 100) == "caf\u00e9\n".encode()
    assert reader.read(size, 100) == reader.read(size + 9, 1) == reader.read(1 << 63, 1) == b""
    assert reader.read(3, 2) == "\u00e9".encode()
    reader.close()


WORDS = 'caf\u00e9 \u6f22\u5b57 \U0001f600 "quoted"\\ \n\t' * 60


def long_line():
    content = [
        {"type": "text", "text": WORDS},
        {"type": "image", "source": {"data": "QUJD" * 300}},
        {"type": "text", "text": WORDS + "end"},
    ]
    return line(type="user", message={"content": content}) + b"\n"


@pytest.fixture
def long_message(handle, monkeypatch):
    """The same message, as it is read whole and as it is read in pieces."""
    handle.write(long_line().replace("\u6f22".encode(), rb"\u6f22\ud83d").replace("\u00e9".encode(), b"\xc3"))
    short = read(handle.chat().walk("00000000-user"))
    monkeypatch.setattr(index_module, "LONG", 500)
    monkeypatch.setattr(render_module, "SEGMENT_BYTES", 50)
    other = MadeHandle(handle.path.parent)
    return other, other.chat().walk("00000000-user"), short


@pytest.mark.parametrize("count", [1, 7, 50, 1000, 1 << 20])
def test_a_long_message_read_front_to_back_is_the_message(long_message, count):
    _, node, text = long_message
    assert read(node, count) == text
    assert node.stat().length == len(text)


def test_a_long_message_read_anywhere_is_the_message(long_message):
    _, node, text = long_message
    reader, chance = node.open(), random.Random(9)
    for _ in range(500):
        offset, count = chance.randrange(len(text) + 5), chance.randrange(200)
        data = reader.read(offset, count)
        assert data == text[offset : offset + len(data)]
        assert bool(data) == (offset < len(text) and count > 0)


def test_reading_a_long_message_on_is_linear(long_message, monkeypatch):
    _, node, text = long_message
    read_bytes = 0
    real = os.pread

    def counted(fd, count, at):
        nonlocal read_bytes
        read_bytes += count
        return real(fd, count, at)

    tick()
    reader = node.open()
    monkeypatch.setattr(os, "pread", counted)
    for offset in range(len(text)):
        assert reader.read(offset, 1) == text[offset : offset + 1]
    assert read_bytes < 2 * len(long_line())


def test_a_long_message_is_cut_like_that_over_a_mebibyte_too(handle):
    handle.write(said(WORDS * 4000))
    node = handle.chat().walk("00000000-user")
    assert node.stat().length > 1 << 20
    assert read(node) == (WORDS * 4000 + "\n").encode()


def test_a_message_that_is_in_no_file_is_read(handle, monkeypatch):
    handle.write(said("a"))
    session = handle.session()
    monkeypatch.setattr(
        handle, "session", lambda: Session("lock", id="s1", sources=session.sources, missing_base="0195a7c4")
    )
    chat = handle.chat()
    assert names(chat) == ["00000000-system", "00000001-user"]
    assert b"0195a7c4" in read(chat.walk("00000000-system"), 10)


# Rewritten in the same moment, so that no look can tell


@pytest.fixture
def unseen(handle, monkeypatch):
    """Rewrite the transcript behind the server's back."""

    def rewrite(data):
        monkeypatch.setattr("agents9core.chat.fingerprint.Fingerprint.compare", lambda *_: Change.SAME)
        handle.path.write_bytes(data)

    return rewrite


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda data: data.replace(b"one", b"o\\n"),
        lambda data: data.replace(b"one", b'o"e'),
        lambda data: data.replace(b"user", b"mode"),
        lambda data: data[:10],
    ],
)
def test_a_message_that_is_no_longer_there_is_gone(handle, unseen, spoilt):
    handle.write(said("one"))
    node = handle.chat().walk("00000000-user")
    unseen(spoilt(handle.path.read_bytes()))
    with pytest.raises(Gone):
        node.open().read(0, 10)


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda data: data.replace(b"x" * 50, b'"\\\n' + b"x" * 47),
        lambda data: data.replace(b"x" * 50, rb"\n" * 25),
        lambda data: data[:50],
    ],
)
def test_a_piece_that_is_no_longer_there_is_gone(handle, unseen, monkeypatch, spoilt):
    monkeypatch.setattr(index_module, "LONG", 50)
    handle.write(said("x" * 500))
    node = handle.chat().walk("00000000-user")
    unseen(spoilt(handle.path.read_bytes()))
    reader = node.open()
    with pytest.raises(Gone):
        reader.read(499, 1)


def test_a_message_past_the_end_of_a_smaller_index_is_gone(handle, monkeypatch):
    handle.write(said("a"), said("b"))
    node = handle.chat().walk("00000001-user")
    smaller = index_module.ChatIndex(claude_chat.read, 0)
    monkeypatch.setattr(handle.snapshot().transcript, "scan", lambda *_: smaller)
    for operation in (node.stat, node.open):
        with pytest.raises(Gone):
            operation()


# More than an index holds


def test_past_the_cap_the_listing_fails_and_the_names_below_open(handle, monkeypatch):
    monkeypatch.setattr(index_module, "CAP", 3)
    handle.write(*(said(str(number)) for number in range(5)))
    chat = handle.chat()
    with pytest.raises(TooLarge):
        chat.members()
    assert read(chat.walk("00000002-user")) == b"2\n"
    assert chat.stat().is_dir
    with pytest.raises(NotFound):
        chat.walk("00000003-user")


def test_at_the_cap_the_listing_succeeds(handle, monkeypatch):
    monkeypatch.setattr(index_module, "CAP", 3)
    handle.write(*(said(str(number)) for number in range(3)))
    assert len(handle.chat().members()) == 3


# The transcript itself


def test_the_transcript_is_the_file_byte_for_byte(handle):
    data = said("a") + b"\0rubbish\xff\n" + b"torn"
    handle.write(data)
    node = TranscriptFile(handle.held())
    assert read(node, 7) == data
    assert (node.stat().length, node.stat().is_dir) == (len(data), False)
    assert node.stat().mtime_ns == os.stat(handle.path).st_mtime_ns


def test_a_reader_of_the_transcript_sees_it_grow(handle):
    handle.write(b"one\n")
    reader = TranscriptFile(handle.held()).open()
    assert reader.read(4, 10) == b""
    handle.append(b"two\n")
    assert reader.read(4, 10) == b"two\n"


def test_the_transcripts_version_moves_with_every_write(handle):
    handle.write(b"one\n")
    node = TranscriptFile(handle.held())
    before = node.stat()
    tick()
    os.utime(handle.path)
    after = node.stat()
    assert (after.path, after.length) == (before.path, before.length)
    assert after.version != before.version


@pytest.mark.parametrize("offset", [4, 5, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_past_the_end_of_the_transcript_there_is_nothing(handle, offset):
    handle.write(b"one\n")
    assert TranscriptFile(handle.held()).open().read(offset, 1 << 30) == b""


def test_what_was_promised_and_cannot_be_read_is_gone(handle, monkeypatch):
    handle.write(b"one\n")
    reader = TranscriptFile(handle.held()).open()
    monkeypatch.setattr(os, "pread", lambda fd, count, at: b"")
    with pytest.raises(Gone):
        reader.read(3, 1)
    assert reader.read(3, 0) == b""


def test_a_transcript_whose_disk_fails_is_unavailable(handle, monkeypatch):
    handle.write(b"one\n")
    reader = TranscriptFile(handle.held()).open()
    tick()
    assert reader.read(0, 4) == b"one\n"

    def fail(fd, count, at):
        raise OSError(5, "I/O error")

    monkeypatch.setattr(os, "pread", fail)
    with pytest.raises(Unavailable):
        reader.read(0, 4)


def test_one_request_looks_once(handle, monkeypatch):
    handle.write(said("a"))
    chat, looks = handle.chat(), []
    real = Transcripts.snapshot
    monkeypatch.setattr(Transcripts, "snapshot", lambda *args: looks.append(args) or real(*args))
    with handle.context.one_request():
        chat.stat()
        chat.walk("00000000-user").stat()
        TranscriptFile(chat._pinned).stat()
    assert len(looks) == 1
    chat.stat()
    assert len(looks) == 2


def test_a_look_without_reading_does_not_do_for_one_with(handle, monkeypatch):
    handle.write(said("a"))
    chat = handle.chat()
    with handle.context.one_request():
        TranscriptFile(chat._pinned).stat()
        assert names(chat) == ["00000000-user"]


def test_few_looks_are_kept_open(handle, monkeypatch):
    monkeypatch.setattr("agents9core.tree.handle.MAX_REQUEST_SNAPSHOTS", 0)
    handle.write(said("a"))
    chat, before = handle.chat(), len(os.listdir("/proc/self/fd"))
    with handle.context.one_request():
        chat.stat()
        assert len(os.listdir("/proc/self/fd")) == before


# The last snapshot, given again


@pytest.fixture
def remembering(handle, monkeypatch):
    """A handle whose session is known to stay, and whose transcript was opened."""
    handle.write(said("a"))
    tick()
    chat = handle.chat()
    monkeypatch.setattr(handle, "reusable_until", lambda: time.monotonic() + 3600)
    monkeypatch.setattr(standing_module, "SNAPSHOT_SECONDS", 3600)
    assert names(chat) == ["00000000-user"]
    monkeypatch.setattr(handle, "session", None)
    return handle


def test_a_snapshot_is_given_again_while_nothing_moves(remembering):
    assert remembering.snapshot() is remembering.snapshot() is remembering.snapshot(scan=False)


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(said("b")),
        lambda path: path.write_bytes(said("a") * 2),
        os.unlink,
        lambda path: path.rename(path.with_name("away")),
        lambda path: os.utime(path, ns=(1, 1)),
        lambda path: path.chmod(0o600),
    ],
)
def test_a_snapshot_is_not_given_again_once_its_file_moved(remembering, change):
    change(remembering.path)
    with pytest.raises(TypeError):  # the session is asked
        remembering.snapshot()


def test_a_snapshot_without_reading_is_not_given_to_who_reads(handle, monkeypatch):
    handle.write(said("a"))
    tick()
    monkeypatch.setattr(handle, "reusable_until", lambda: time.monotonic() + 3600)
    assert handle.snapshot(scan=False).index is None
    assert handle.snapshot().index is not None


def test_a_snapshot_is_not_given_again_once_its_session_may_be_another(remembering, monkeypatch):
    now = time.monotonic() + 3601
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with pytest.raises(TypeError):
        remembering.snapshot()


def test_a_session_that_must_be_asked_is_asked_each_time(handle):
    handle.write(said("a"))
    tick()
    chat = handle.chat()
    assert names(chat) == ["00000000-user"]
    handle.id = None
    with pytest.raises(Gone):
        names(chat)


def test_a_handle_holds_no_file_open(handle, monkeypatch):
    monkeypatch.setattr(standing_module, "_SWEEP_SECONDS", 0.01)
    monkeypatch.setattr(handle, "reusable_until", lambda: time.monotonic() + 3600)
    before = len(os.listdir("/proc/self/fd"))
    handle.write(said("a"))
    tick()
    assert names(handle.chat()) == ["00000000-user"]
    until = time.monotonic() + 10
    while len(os.listdir("/proc/self/fd")) > before:
        assert time.monotonic() < until
        time.sleep(0.01)


# Prepared before it is read


def test_a_prepared_reader_renders_nothing_more(handle, monkeypatch):
    handle.write(said("text"))
    reader = handle.chat().walk("00000000-user").open()
    reader.prepare()
    monkeypatch.setattr(chat_module, "render", None)
    reader.prepare()
    assert reader.read(0, 100) == b"text\n"
    assert reader.read(2, 2) == b"xt"


def test_a_prepared_reader_notices_the_end(handle):
    handle.write(said("text"))
    reader = handle.chat().walk("00000000-user").open()
    reader.prepare()
    handle.id = None
    with pytest.raises(Gone):
        reader.read(0, 100)


def test_what_could_not_be_prepared_is_tried_again(handle, monkeypatch):
    handle.write(said("text"))
    reader = handle.chat().walk("00000000-user").open()
    with monkeypatch.context() as broken:
        broken.setattr(os, "pread", raising_io_error)
        with pytest.raises(Unavailable):
            reader.prepare()
        with pytest.raises(Unavailable):
            reader.read(0, 100)
    assert reader.read(0, 100) == b"text\n"


def raising_io_error(fd, count, at):
    raise OSError(5, "I/O error")


def test_a_step_is_a_walk_and_a_look(handle):
    handle.write(said("text"), called("1"), result("1"))
    chat = handle.chat()
    for name in names(chat):
        node, stat = chat.step(name)
        assert (node.name, stat) == (name, chat.walk(name).stat())
        assert node.start()[1] == stat


# Several readers


def test_two_that_read_while_a_third_appends_see_only_whole_messages(handle):
    handle.write(said("0"))
    chat, wrong, stop = handle.chat(), [], threading.Event()

    def look():
        while not stop.is_set():
            members = chat.members()
            last = len(members) - 1
            if read(chat.walk(members[last].name)) != f"{last}\n".encode():
                wrong.append(last)

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(1, 150):
        one = said(str(number))
        handle.append(one[:30])
        handle.append(one[30:])
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong
    assert len(chat.members()) == 150
