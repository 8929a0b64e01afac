"""A transcript that grows, is torn, shrinks, is replaced, goes: what is read of it, and as what."""

import errno
import os
import threading
import time
from contextlib import nullcontext

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from agents9core.chat import index as index_module
from agents9core.chat import snapshots as standing_module
from agents9core.chat import transcript as transcript_module
from agents9core.chat.decoder import read_object
from agents9core.chat.render import make, measure, render
from agents9core.chat.transcript import Transcripts
from agents9core.errors import Denied, Gone, Malformed, NotFound, Unavailable
from agents9core.files import limits
from agents9core.files.root import Root
from agents9core.files.zstd import inflate
from agents9core.harness.claude import chat as claude_chat
from agents9core.harness.codex import chat as codex_chat
from agents9core.harness.omp import chat as omp_chat
from agents9core.identity import PathNumbers
from agents9core.resolver import REUSE_SECONDS
from agents9core.session import Session, Source
from tests.support.chatlines import line
from tests.support.fakestore import title_slot


def said(text, **fields):
    return line(type="user", message={"content": text}, **fields) + b"\n"


def texts(snapshot):
    """Read every message of a snapshot back from its files."""
    index = snapshot.index
    return [_text(snapshot, index.read, index.location(id_)) for id_ in range(len(index))]


def _text(snapshot, read, place):
    if place.segments is not None:
        made = (
            piece.literal or make(piece.how, snapshot.read(place.at + piece.at, piece.length))
            for piece in place.segments
        )
        return b"".join(made).decode().rstrip("\n")
    record = read_object(snapshot.read(place.at, place.length), read)
    return render(record.messages[place.ordinal].parts).decode().rstrip("\n")


class Scene:
    """Transcripts below a directory, looked at as the server does."""

    def __init__(self, path, budget_bytes=transcript_module.BUDGET_BYTES):
        self.root = Root(str(path))
        self.path = path / "t.jsonl"
        self.transcripts = Transcripts(PathNumbers(), budget_bytes)

    def snapshot(self, *sources, read=claude_chat.read, missing_base=None, has_ended=lambda: False):
        sources = sources or (Source(self.root, (self.path.name,)),)
        session = Session("test", sources=sources, missing_base=missing_base)
        return nullcontext(self.transcripts.snapshot(session, read, has_ended))

    def texts(self, *sources, **how):
        with self.snapshot(*sources, **how) as snapshot:
            return texts(snapshot)

    def identity(self, **how):
        with self.snapshot(**how) as snapshot:
            return snapshot.transcript, snapshot.generation, snapshot.number

    def append(self, data):
        with open(self.path, "ab") as file:
            file.write(data)


@pytest.fixture
def scene(tmp_path):
    return Scene(tmp_path)


def tick():
    """Let the file system's clock go on, and a look be long enough after the last write."""
    time.sleep(0.03)


# Growth


def test_what_is_appended_is_read_and_nothing_before_it_again(scene, monkeypatch):
    scene.path.write_bytes(said("one"))
    tick()
    first = scene.identity()
    scene.append(said("two"))
    reads = []
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, n, at: reads.append(at) or real(fd, n, at))
    with scene.snapshot() as snapshot:
        assert len(snapshot.index) == 2
    assert len(said("one")) in reads
    assert scene.identity() == first


def test_a_look_does_not_wait_for_a_scan(scene):
    scene.path.write_bytes(said("one"))
    transcript, *_ = scene.identity()
    looked = []
    with transcript.lock:
        look = threading.Thread(target=lambda: looked.append(scene.identity(read=None)))
        look.start()
        look.join(10)
    assert looked == [scene.identity()]


def test_a_scan_that_fails_midway_loses_nothing(scene, monkeypatch):
    scene.path.write_bytes(said("one") + said("two"))
    calls = []

    def fails_once(parts, is_prose):
        calls.append(parts)
        if len(calls) == 2:
            raise MemoryError
        return measure(parts, is_prose)

    monkeypatch.setattr(index_module, "measure", fails_once)
    with pytest.raises(MemoryError):
        scene.identity()
    assert scene.texts() == ["one", "two"]


def test_where_nothing_moved_nothing_is_read(scene, monkeypatch):
    scene.path.write_bytes(said("one"))
    tick()
    scene.identity()

    def read(fd, count, at):
        raise AssertionError("the file was read")

    monkeypatch.setattr(os, "pread", read)
    scene.identity()


def test_an_unfinished_line_waits_for_its_newline_wherever_it_is_torn(scene):
    data = (
        said("one") + line(type="assistant", message={"content": "\u6f22\U0001f600"}) + b"\n" + said("three")
    )
    scene.path.write_bytes(b"")
    whole = [data.index(b"\n", start) + 1 for start in (0, len(said("one")), len(data) - len(said("three")))]
    for size in range(1, len(data) + 1):
        scene.append(data[size - 1 : size])
        with scene.snapshot() as snapshot:
            assert len(snapshot.index) == sum(size >= end for end in whole)
            assert (snapshot.index.skipped, snapshot.generation) == (0, 0)
    assert scene.texts() == ["one", "\u6f22\U0001f600", "three"]


def test_an_unfinished_line_is_not_read_again_from_its_start_at_each_look(scene, monkeypatch):
    reads = []
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, n, at: reads.append(n) or real(fd, n, at))
    scene.path.write_bytes(b"")
    for _ in range(50):
        scene.append(b"x" * 1000)
        scene.identity()
    assert sum(reads) < 50 * (1000 + 4 * 64)


def test_the_rest_of_a_torn_line_makes_it_one_skipped_line(scene):
    scene.path.write_bytes(b'{"type":"us')
    scene.identity()
    scene.append(b"\n" + said("next"))
    with scene.snapshot() as snapshot:
        assert (texts(snapshot), snapshot.index.skipped) == (["next"], 1)


DATA = b"".join(
    [
        said("one", uuid="u1"),
        b"rubbish\n",
        said("\u20ac" * 5)[:-1] + said("glued"),
        b"\0\0" + said("after nuls"),
        said("one", uuid="u1"),
        b'{"type":"user","message":{"content":"\\ud800"}}\n',
        said([{"type": "tool_result", "tool_use_id": "t", "content": "r"}]),
    ]
)


@given(st.lists(st.integers(0, len(DATA)), max_size=10), st.integers(1, 70))
def test_any_steps_of_growth_give_the_same_chat(tmp_path_factory, sizes, chunk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transcript_module, "_CHUNK", chunk)
        scene = Scene(tmp_path_factory.mktemp("grown"))
        scene.path.write_bytes(b"")
        known: list[str] = []
        for start, end in zip([0, *sorted(sizes)], [*sorted(sizes), len(DATA)], strict=True):
            scene.append(DATA[start:end])
            before, known = known, scene.texts()
            assert known[: len(before)] == before
        assert known == ["one", "\u20ac" * 5, "glued", "after nuls", "\ufffd", "r"]


def test_a_line_longer_than_a_chunk_is_read_whole(scene, monkeypatch):
    monkeypatch.setattr(transcript_module, "_CHUNK", 16)
    scene.path.write_bytes(said("a") + said("b" * 500) + said("c"))
    assert scene.texts() == ["a", "b" * 500, "c"]


def test_a_line_over_the_cap_is_skipped_unread(scene, monkeypatch):
    monkeypatch.setattr(transcript_module, "LONGEST", 1 << 20)
    scene.path.write_bytes(said("one"))
    with open(scene.path, "r+b") as file:
        file.seek(3 << 20)
        file.write(b"\n" + said("two"))
    with scene.snapshot() as snapshot:
        assert (texts(snapshot), snapshot.index.skipped) == (["one", "two"], 1)
        assert snapshot.index.skipped_at == [len(said("one"))]


def test_a_line_as_long_as_the_cap_is_read(scene, monkeypatch):
    monkeypatch.setattr(transcript_module, "LONGEST", len(said("one")) - 1)
    scene.path.write_bytes(said("one"))
    assert scene.texts() == ["one"]


def test_the_cap_is_256_mebibytes():
    assert limits.LONGEST == 256 << 20


def test_a_file_of_nuls_has_no_messages(scene):
    scene.path.write_bytes(b"")
    os.truncate(scene.path, 5 << 20)
    with scene.snapshot() as snapshot:
        assert (len(snapshot.index), snapshot.index.skipped) == (0, 0)


def test_an_empty_file_is_an_empty_chat(scene):
    scene.path.write_bytes(b"")
    assert scene.texts() == []


# Another transcript


def truncated(path):
    os.truncate(path, len(said("one")))


def truncated_and_written(path):
    path.write_bytes(said("other") * 9)


def replaced(path):
    beside = path.with_suffix(".new")
    beside.write_bytes(path.read_bytes())
    beside.rename(path)


def deleted_and_made_again(path):
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)


def rewritten_in_place(path):
    path.write_bytes(path.read_bytes().replace(b"two", b"TWO"))


def rewritten_and_the_time_put_back(path):
    stat = os.stat(path)
    rewritten_in_place(path)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def rewritten_longer(path):
    path.write_bytes(path.read_bytes().replace(b"one", b"ONE") + said("more"))


CHANGES = [
    truncated,
    truncated_and_written,
    replaced,
    deleted_and_made_again,
    rewritten_in_place,
    rewritten_and_the_time_put_back,
    rewritten_longer,
]


@pytest.mark.parametrize("change", CHANGES)
def test_what_did_not_only_grow_is_another_transcript(scene, change):
    scene.path.write_bytes(said("one") + said("two") * 3)
    before = scene.identity()
    tick()
    change(scene.path)
    after = scene.identity()
    assert before[:2] != after[:2]
    assert before[2] != after[2]


@pytest.mark.parametrize("change", CHANGES)
def test_another_transcript_is_read_from_its_start(scene, change):
    scene.path.write_bytes(said("one") + said("two") * 3)
    scene.identity()
    tick()
    change(scene.path)
    fresh = Scene(scene.path.parent)
    assert scene.texts() == fresh.texts()


@pytest.mark.parametrize("change", [truncated, truncated_and_written, replaced, deleted_and_made_again])
def test_another_file_is_noticed_also_where_nothing_was_ever_indexed(scene, change):
    scene.path.write_bytes(said("one") + said("two") * 30)
    before = scene.identity(read=None)
    tick()
    change(scene.path)
    assert scene.identity(read=None)[2] != before[2]


def test_growth_is_no_other_file_where_nothing_was_ever_indexed(scene):
    scene.path.write_bytes(said("one"))
    before = scene.identity(read=None)
    tick()
    scene.append(said("two"))
    assert scene.identity(read=None) == before


def test_each_generation_has_numbers_of_its_own(scene):
    numbers = set()
    for count in (3, 2, 1):
        scene.path.write_bytes(said("x") * count)
        numbers.add(scene.identity()[2] >> 20)
    assert len(numbers) == 3


@pytest.mark.parametrize("touch", [os.utime, lambda path: os.chmod(path, 0o600)])
def test_a_time_that_moves_alone_keeps_everything(scene, touch):
    scene.path.write_bytes(said("one"))
    with scene.snapshot() as snapshot:
        before = snapshot.index
    tick()
    touch(scene.path)
    with scene.snapshot() as snapshot:
        assert snapshot.index is before


def test_a_renamed_file_is_the_same_transcript(scene):
    scene.path.write_bytes(said("one"))
    before = scene.identity()
    scene.path = scene.path.rename(scene.path.with_name("elsewhere.jsonl"))
    assert scene.identity() == before


def test_a_look_that_reads_nothing_does_not_hide_growth(scene):
    scene.path.write_bytes(said("one"))
    scene.identity()
    scene.append(said("two"))
    scene.identity(read=None)
    assert scene.texts() == ["one", "two"]


# What is no transcript


def make_fifo(path):
    os.mkfifo(path)


def make_link(path):
    path.with_name("real").write_bytes(said("elsewhere"))
    path.symlink_to("real")


@pytest.mark.parametrize(
    ("put", "error"),
    [
        (lambda path: None, NotFound),
        (make_fifo, Malformed),
        (make_link, NotFound),
        (lambda path: path.mkdir(), Malformed),
    ],
    ids=["nothing", "fifo", "link", "directory"],
)
def test_what_is_no_plain_file_is_neither_followed_nor_waited_for(scene, put, error):
    put(scene.path)
    with pytest.raises(error), scene.snapshot():
        pass


def test_a_file_that_may_not_be_read_is_denied(scene, monkeypatch):
    scene.path.write_bytes(b"")
    opened = os.open

    def refuse(path, flags, *rest, **named):
        if path == scene.path.name:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return opened(path, flags, *rest, **named)

    monkeypatch.setattr("agents9core.files.root.os.open", refuse)
    with pytest.raises(Denied), scene.snapshot():
        pass


@pytest.mark.parametrize("read", [claude_chat.read, None])
def test_a_disk_that_fails_is_unavailable(scene, monkeypatch, read):
    scene.path.write_bytes(said("one"))
    scene.identity()
    tick()
    os.utime(scene.path)

    def fail(fd, count, at):
        raise OSError(5, "I/O error")

    monkeypatch.setattr(os, "pread", fail)
    with pytest.raises(Unavailable), scene.snapshot(read=read):
        pass


def test_after_a_disk_failed_reading_goes_on_where_it_stopped(scene, monkeypatch):
    monkeypatch.setattr(transcript_module, "_CHUNK", 50)
    scene.path.write_bytes(said("one") + said("two") + said("three"))
    real, left = os.pread, [2]

    def fail_once(fd, count, at):
        left[0] -= 1
        if left[0] == 0:
            raise OSError(5, "I/O error")
        return real(fd, count, at)

    monkeypatch.setattr(os, "pread", fail_once)
    with pytest.raises(Unavailable), scene.snapshot():
        pass
    assert scene.texts() == ["one", "two", "three"]


def test_a_file_that_shrinks_while_it_is_read_ends_there(scene, monkeypatch):
    scene.path.write_bytes(said("one") + said("two"))
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, n, at: real(fd, min(n, max(0, len(said("one")) - at)), at))
    with scene.snapshot() as snapshot:
        assert len(snapshot.index) == 1


def test_a_line_that_shrinks_before_it_is_read_is_skipped(scene, monkeypatch):
    monkeypatch.setattr(transcript_module, "_CHUNK", 16)
    scene.path.write_bytes(said("one"))
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, n, at: real(fd, n, at)[:16])
    with scene.snapshot() as snapshot:
        assert (len(snapshot.index), snapshot.index.skipped) == (0, 1)


def test_reading_what_is_no_longer_there_is_gone(scene):
    scene.path.write_bytes(said("one"))
    with scene.snapshot() as snapshot:
        os.truncate(scene.path, 10)
        with pytest.raises(Gone):
            snapshot.read(0, 20)


def test_reading_from_a_disk_that_fails_is_unavailable(scene, monkeypatch):
    scene.path.write_bytes(said("one"))
    with scene.snapshot() as snapshot:
        monkeypatch.setattr(os, "pread", lambda fd, n, at: (_ for _ in ()).throw(OSError(5, "I/O error")))
        with pytest.raises(Unavailable):
            snapshot.read(0, 20)


# Memory for indexes


def test_an_index_dropped_for_room_is_made_again_with_the_same_numbers(tmp_path):
    scene = Scene(tmp_path, budget_bytes=1)
    other = tmp_path / "other.jsonl"
    scene.path.write_bytes(said("one", uuid="u") + said("two"))
    other.write_bytes(said("else"))
    with scene.snapshot() as snapshot:
        before, identity, known = snapshot.index, (snapshot.generation, snapshot.number), texts(snapshot)
    scene.texts(Source(scene.root, (other.name,)))
    assert snapshot.transcript.index is None
    with scene.snapshot() as snapshot:
        assert snapshot.index is not before
        assert ((snapshot.generation, snapshot.number), texts(snapshot)) == (identity, known)


def test_a_file_that_grew_meanwhile_keeps_its_numbers(tmp_path):
    scene = Scene(tmp_path, budget_bytes=1)
    (tmp_path / "other.jsonl").write_bytes(b"")
    scene.path.write_bytes(said("one"))
    before = scene.identity()
    scene.texts(Source(scene.root, ("other.jsonl",)))
    scene.append(said("two"))
    assert (scene.identity(), scene.texts()) == (before, ["one", "two"])


def test_a_file_rewritten_meanwhile_is_another(tmp_path):
    scene = Scene(tmp_path, budget_bytes=1)
    (tmp_path / "other.jsonl").write_bytes(b"")
    scene.path.write_bytes(said("one"))
    before = scene.identity()
    scene.texts(Source(scene.root, ("other.jsonl",)))
    tick()
    scene.path.write_bytes(said("two"))
    assert scene.identity()[2] != before[2]


def test_the_index_used_last_is_kept_whatever_it_takes(tmp_path):
    scene = Scene(tmp_path, budget_bytes=1)
    scene.path.write_bytes(said("one"))
    with scene.snapshot() as snapshot:
        pass
    assert snapshot.transcript.index is snapshot.index


def test_the_least_recently_used_are_dropped_first(tmp_path):
    scene = Scene(tmp_path)
    sources = [(Source(scene.root, (f"{number}.jsonl",)),) for number in range(3)]
    snapshots = []
    for number in range(3):
        (tmp_path / f"{number}.jsonl").write_bytes(said("x"))
        with scene.snapshot(*sources[number]) as snapshot:
            snapshots.append(snapshot)
    held = sum(snapshot.index.nbytes for snapshot in snapshots)
    scene.transcripts._budget_bytes = held - 1
    scene.texts(*sources[0])
    assert [snapshot.transcript.index is None for snapshot in snapshots] == [False, True, False]


# Several files, one transcript


def meta(**fields):
    return line(type="session_meta", ordinal=0, payload=fields) + b"\n"


def answer(text, **fields):
    payload = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return line(type="response_item", payload=payload, **fields) + b"\n"


def called(id_, name="exec"):
    payload = {"type": "function_call", "call_id": id_, "name": name, "arguments": "{}"}
    return line(type="response_item", payload=payload) + b"\n"


def result(id_):
    payload = {"type": "function_call_output", "call_id": id_, "output": "done"}
    return line(type="response_item", payload=payload) + b"\n"


class Fork(Scene):
    """A rollout that begins with others."""

    def __init__(self, path):
        super().__init__(path)
        self.sources = []

    def put(self, name, data, limit=None):
        (self.path.parent / name).write_bytes(data)
        self.sources.append(Source(self.root, (name,), limit))

    def snapshot(self, *sources, read=codex_chat.read, missing_base=None):
        return super().snapshot(*(sources or self.sources), read=read, missing_base=missing_base)

    def append_to(self, name, data):
        with open(self.path.parent / name, "ab") as file:
            file.write(data)


@pytest.fixture
def fork(tmp_path):
    return Fork(tmp_path)


@pytest.fixture
def three(fork):
    """Three files: what is left of each after its limit is not the chat's."""
    for name, own in (("a", answer("a1") + answer("a2")), ("b", meta() + answer("b1"))):
        fork.put(name, own + answer(f"{name}: no"), limit=len(own))
    fork.put("c", meta() + answer("c1"))
    return fork


def test_bases_come_first_each_to_its_limit(three):
    assert three.texts() == ["a1", "a2", "b1", "c1"]


def test_only_the_last_file_grows(three):
    before = three.identity()
    for name in "abc":
        three.append_to(name, answer(f"{name} more"))
    assert three.texts() == ["a1", "a2", "b1", "c1", "c more"]
    assert three.identity() == before


def test_places_run_over_all_files(three):
    with three.snapshot() as snapshot:
        size_a = three.sources[0].limit
        assert snapshot.index.location(0).at == 0
        assert snapshot.index.location(2).at == size_a + len(meta())
        assert snapshot.read(size_a, len(meta())) == meta()


def test_calls_are_answered_across_the_cut(fork):
    base = called("c1", "Grep")
    fork.put("a", base, limit=len(base))
    fork.put("b", result("c1"))
    with fork.snapshot() as snapshot:
        assert [snapshot.index.kind(id_) for id_ in range(2)] == ["grep", "grep-result"]


def test_an_unfinished_line_at_the_cut_is_no_message(fork):
    fork.put("a", answer("a1") + answer("a2"), limit=len(answer("a1")) + 9)
    fork.put("b", answer("b1"))
    assert fork.texts() == ["a1", "b1"]


def test_a_base_of_no_bytes_is_nothing(fork):
    fork.put("a", answer("a1"), limit=0)
    fork.put("b", answer("b1"))
    assert fork.texts() == ["b1"]


def test_each_file_has_inherited_records_of_its_own(fork):
    base = meta(subagent_history_start_ordinal=5) + answer("no", ordinal=3) + answer("a", ordinal=5)
    fork.put("a", base, limit=len(base))
    fork.put("b", meta() + answer("b", ordinal=3))
    assert fork.texts() == ["a", "b"]


def spoilt_at_its_start(path):
    path.write_bytes(path.read_bytes().replace(b"{", b"[", 1) + b"longer")


@pytest.mark.parametrize("change", [truncated, truncated_and_written, spoilt_at_its_start, replaced])
@pytest.mark.parametrize("name", ["a", "b"])
def test_a_base_that_changes_makes_another_transcript(three, change, name):
    before = three.identity()
    tick()
    change(three.path.parent / name)
    assert three.identity()[2] != before[2]


def test_a_base_that_gets_the_bytes_it_lacked_makes_another_transcript(fork):
    fork.put("a", answer("a1"), limit=len(answer("a1") + answer("a2")))
    fork.put("b", answer("b1"))
    before = fork.identity()
    fork.append_to("a", answer("a2") + answer("a3"))
    assert fork.identity()[2] != before[2]
    assert fork.texts() == ["a1", "a2", "b1"]


def test_a_base_that_is_not_there_is_missing(fork):
    fork.put("b", answer("b1"))
    with fork.snapshot(Source(fork.root, ("a",), 10), *fork.sources) as snapshot:
        notice, own = texts(snapshot)
    assert (own, "rollout a" in notice) == ("b1", True)


def test_what_comes_before_a_missing_base_is_missing_too(fork):
    fork.put("a", answer("a1"), limit=len(answer("a1")))
    fork.put("b", answer("b1"))
    first, last = fork.sources
    with fork.snapshot(first, Source(fork.root, ("gone",), 10), last) as snapshot:
        notice, *own = texts(snapshot)
    assert (own, "rollout gone" in notice) == (["b1"], True)


@pytest.mark.parametrize("short", [0, 1])
def test_the_last_record_of_a_base_counts_with_and_without_its_newline(fork, short):
    fork.put("a", answer("a1") + answer("a2"), limit=len(answer("a1") + answer("a2")) - short)
    fork.put("b", answer("b1"))
    assert fork.texts() == ["a1", "a2", "b1"]
    fork.append_to("b", answer("b2"))
    assert fork.texts() == ["a1", "a2", "b1", "b2"]


def test_a_missing_base_is_said_first_and_its_coming_makes_another_transcript(fork):
    fork.put("b", answer("b1"))
    with fork.snapshot(missing_base="0195a7c4") as snapshot:
        notice, own = texts(snapshot)
    assert "0195a7c4" in notice
    assert own == "b1"
    assert fork.identity()[2] != snapshot.number


def test_the_same_file_alone_is_another_transcript_than_behind_its_base(three):
    with three.snapshot() as behind, three.snapshot(three.sources[-1]) as alone:
        assert behind.number != alone.number


def test_a_base_may_be_compressed(fork):
    base = answer("a1") + answer("\u20ac" * 1000)
    packed = zstandard.ZstdCompressor().compress(base + answer("no"))
    fork.put("a.jsonl.zst", packed, limit=len(base))
    fork.put("b", answer("b1"))
    assert fork.texts() == ["a1", "\u20ac" * 1000, "b1"]


def test_a_compressed_base_is_inflated_once(fork, monkeypatch):
    base = answer("a1")
    fork.put("a.jsonl.zst", zstandard.ZstdCompressor().compress(base), limit=len(base))
    fork.put("b", answer("b1"))
    before = fork.identity()
    monkeypatch.setattr("agents9core.files.inflated.inflate", None)
    fork.append_to("b", answer("b2"))
    assert (fork.texts(), fork.identity()) == (["a1", "b1", "b2"], before)


def test_a_compressed_base_that_is_damaged_is_missing(fork):
    fork.put("a.jsonl.zst", b"rubbish", limit=10)
    fork.put("b", answer("b1"))
    notice, own = fork.texts()
    assert (own, "a.jsonl.zst" in notice) == ("b1", True)


def test_a_compressed_base_that_failed_once_is_inflated_again(fork, monkeypatch):
    fork.put("a.jsonl.zst", zstandard.ZstdCompressor().compress(answer("a1")), limit=len(answer("a1")))
    fork.put("b", answer("b1"))
    with monkeypatch.context() as patch:
        patch.setattr("agents9core.files.inflated.inflate", lambda fd, limit: os.open("/nowhere", 0))
        with pytest.raises(Unavailable), fork.snapshot():
            pass
    assert fork.texts() == ["a1", "b1"]


def test_inflating_a_long_base_holds_up_nobody_elses_transcript(tmp_path, monkeypatch):
    transcripts, inflating, go_on = Transcripts(PathNumbers()), threading.Event(), threading.Event()
    forks = []
    for name in ("slow", "quick"):
        fork = Fork(tmp_path)
        fork.transcripts = transcripts
        fork.put(f"{name}.zst", zstandard.ZstdCompressor().compress(answer(name)), limit=len(answer(name)))
        forks.append(fork)
    slow, quick = forks
    slow_inode = os.stat(tmp_path / "slow.zst").st_ino

    def slowly(fd, limit):
        if os.fstat(fd).st_ino == slow_inode:
            inflating.set()
            assert go_on.wait(10)
        return inflate(fd, limit)

    monkeypatch.setattr("agents9core.files.inflated.inflate", slowly)
    found = []
    readers = [threading.Thread(target=lambda: found.append(slow.texts())) for _ in range(2)]
    for reader in readers:
        reader.start()
    assert inflating.wait(10)
    assert quick.texts() == ["quick"]
    go_on.set()
    for reader in readers:
        reader.join()
    assert found == [["slow"], ["slow"]]


def test_few_inflated_files_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("agents9core.files.inflated._KEPT", 2)
    transcripts = Transcripts(PathNumbers())
    open_before = len(os.listdir("/proc/self/fd"))
    for number in range(6):
        fork = Fork(tmp_path)
        fork.transcripts = transcripts
        fork.put(f"{number}.zst", zstandard.ZstdCompressor().compress(answer("a")), limit=len(answer("a")))
        fork.put("own", answer("b"))
        assert fork.texts() == ["a", "b"]
    assert len(os.listdir("/proc/self/fd")) == open_before + 2


# A snapshot that stands


@pytest.fixture
def settled(scene, monkeypatch):
    """A transcript that was looked at long enough after it was written, and none of its snapshots too old."""
    monkeypatch.setattr(standing_module, "SNAPSHOT_SECONDS", 3600)
    scene.path.write_bytes(said("one") + said("two") * 3)
    tick()
    scene.identity()
    return scene


def one_visit(scene, **how):
    with scene.snapshot(**how) as snapshot:
        return snapshot


def test_a_second_look_at_what_has_not_moved_opens_nothing(settled, monkeypatch):
    first = one_visit(settled)
    monkeypatch.setattr("agents9core.files.root.os.open", None)
    assert one_visit(settled) is first
    assert one_visit(settled, read=None) is first


@pytest.mark.parametrize("change", CHANGES)
def test_a_snapshot_does_not_stand_once_its_file_is_another(settled, change):
    before = settled.identity()
    change(settled.path)
    assert settled.identity()[2] != before[2]
    assert settled.texts() == Scene(settled.path.parent).texts()


def test_a_snapshot_does_not_stand_once_its_file_has_grown(settled):
    settled.append(said("three"))
    assert settled.texts()[-1] == "three"


@pytest.mark.parametrize("take_away", [os.unlink, lambda path: path.rename(path.with_name("away"))])
def test_a_snapshot_does_not_stand_once_its_file_has_gone(settled, take_away):
    take_away(settled.path)
    with pytest.raises(NotFound), settled.snapshot():
        pass


def test_a_snapshot_does_not_stand_once_its_index_was_dropped(settled):
    first = one_visit(settled)
    first.transcript.index = None
    assert one_visit(settled).index is not first.index


def test_a_look_without_an_index_does_not_stand_for_one_with_it(scene):
    scene.path.write_bytes(said("one"))
    tick()
    scene.identity(read=None)
    assert scene.texts() == ["one"]


def test_another_directory_in_the_place_of_one_above_is_seen_soon(tmp_path):
    above = tmp_path / "above"
    above.mkdir()
    scene = Scene(above)
    scene.path.write_bytes(said("one"))
    tick()
    scene.identity()
    above.rename(tmp_path / "away")
    above.mkdir()
    scene.path.write_bytes(said("other"))
    until = time.monotonic() + standing_module.SNAPSHOT_SECONDS
    while scene.texts() != ["other"]:
        assert time.monotonic() < until + 1
    assert standing_module.SNAPSHOT_SECONDS <= REUSE_SECONDS


def test_what_is_not_looked_at_any_more_is_closed(scene, monkeypatch):
    monkeypatch.setattr(standing_module, "_SWEEP_SECONDS", 0.01)
    open_before = len(os.listdir("/proc/self/fd"))
    scene.path.write_bytes(said("one"))
    tick()
    scene.identity()
    assert len(os.listdir("/proc/self/fd")) == open_before + 1
    until = time.monotonic() + 10
    while len(os.listdir("/proc/self/fd")) > open_before:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_few_snapshots_are_kept_open(tmp_path, monkeypatch):
    monkeypatch.setattr(standing_module, "_MOST", 2)
    open_before = len(os.listdir("/proc/self/fd"))
    scene = Scene(tmp_path)
    names = [f"{number}.jsonl" for number in range(6)]
    for name in names:
        (tmp_path / name).write_bytes(said("one"))
    tick()
    for name in names:
        scene.texts(Source(scene.root, (name,)))
    assert len(os.listdir("/proc/self/fd")) <= open_before + 2


# Several readers


def test_reading_while_another_appends_never_shows_a_wrong_message(scene):
    scene.path.write_bytes(said("0"))
    wrong, stop = [], threading.Event()

    def look():
        while not stop.is_set():
            known = scene.texts()
            if known != [str(number) for number in range(len(known))]:
                wrong.append(known)

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(1, 200):
        one = said(str(number))
        scene.append(one[:20])
        scene.append(one[20:])
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong
    assert len(scene.texts()) == 200


@pytest.mark.parametrize("read", [claude_chat.read, None])
def test_a_look_that_is_overtaken_by_another_looks_again(scene, monkeypatch, read):
    scene.path.write_bytes(said("one"))
    before = scene.identity(read=read)
    real, overtaken = Transcripts._transcript, []

    def overtake(transcripts, files, *which):
        if not overtaken:
            overtaken.append(True)
            scene.append(said("two"))
            scene.identity(read=read)
        return real(transcripts, files, *which)

    monkeypatch.setattr(Transcripts, "_transcript", overtake)
    assert scene.identity(read=read) == before
    assert scene.identity(read=read) == before


def test_a_compressed_base_is_not_looked_at_again(fork, monkeypatch):
    base = answer("a1")
    fork.put("a.jsonl.zst", zstandard.ZstdCompressor().compress(base), limit=len(base))
    fork.put("b", answer("b1"))
    before = fork.identity()
    monkeypatch.setattr(transcript_module.time, "time_ns", lambda: 1)
    assert (fork.identity(), fork.identity()) == (before, before)


def test_a_long_first_scan_holds_up_nobody_elses_transcript(scene, tmp_path):
    slow, chat_format, go_on = tmp_path / "slow.jsonl", threading.Event(), threading.Event()
    slow.write_bytes(said("slow"))
    scene.path.write_bytes(said("quick"))

    class ReadsSlowly:
        slot_bytes = staticmethod(claude_chat.read.slot_bytes)

        def __call__(self, data):
            return claude_chat.read(data)

        def lines(self, data, spans):
            chat_format.set()
            assert go_on.wait(10)
            return claude_chat.read.lines(data, spans)

    reader = threading.Thread(
        target=scene.texts, args=(Source(scene.root, (slow.name,)),), kwargs={"read": ReadsSlowly()}
    )
    reader.start()
    assert chat_format.wait(10)
    assert scene.texts() == ["quick"]
    go_on.set()
    reader.join()


def test_no_descriptor_is_left_open(three):
    three.texts()
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(5):
        three.texts()
    with pytest.raises(NotFound), three.snapshot(*three.sources, Source(three.root, ("gone",))):
        pass
    assert sorted(os.listdir("/proc/self/fd")) == before


WHOLE = said("the last").rstrip(b"\n")


@pytest.mark.parametrize(
    ("tail", "has_ended", "shown"),
    [(WHOLE, True, ["first", "the last"]), (WHOLE, False, ["first"]), (WHOLE[:-1], True, ["first"])],
)
def test_a_last_line_without_its_newline_counts_once_nobody_writes_it(scene, tail, has_ended, shown):
    scene.path.write_bytes(said("first") + tail)
    assert scene.texts(has_ended=lambda: has_ended) == shown
    with scene.snapshot() as snapshot:
        assert snapshot.index.skipped == 0


def test_a_session_that_goes_on_after_its_last_line_was_read_keeps_its_ids(scene):
    scene.path.write_bytes(said("first") + WHOLE)
    assert scene.texts(has_ended=lambda: True) == ["first", "the last"]
    with open(scene.path, "ab") as file:
        file.write(b"\n" + said("and on"))
    assert scene.texts() == ["first", "the last", "and on"]


def test_a_cut_last_line_is_tried_once_for_each_size_of_the_file(scene):
    scene.path.write_bytes(said("first") + WHOLE[:-2])
    asked = []
    for _ in range(3):
        scene.texts(has_ended=lambda: asked.append(1) or True)
    assert len(asked) == 1
    with open(scene.path, "ab") as file:
        file.write(WHOLE[-2:])
    assert scene.texts(has_ended=lambda: True) == ["first", "the last"]


# omp's title slot


def spoken(text):
    return line(type="message", message={"role": "user", "content": text}) + b"\n"


def rewrite(path, at, data):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def test_a_title_rewritten_in_its_slot_leaves_the_transcript_the_same(scene):
    scene.path.write_bytes(title_slot("one").encode() + spoken("hello"))
    tick()
    first = scene.identity(read=omp_chat.read)
    for title in ("two", "", "a" * 99):
        rewrite(scene.path, 0, title_slot(title).encode())
        assert scene.identity(read=omp_chat.read) == first
        assert scene.identity(read=None) == first
        tick()
    scene.append(spoken("more"))
    rewrite(scene.path, 0, title_slot("three").encode())
    assert scene.texts(read=omp_chat.read) == ["hello", "more"]
    assert scene.identity(read=omp_chat.read) == first


@pytest.mark.parametrize("at", [256, 300])
def test_what_stands_after_the_slot_may_not_be_rewritten(scene, at):
    scene.path.write_bytes(title_slot("one").encode() + spoken("hello") * 9)
    tick()
    transcript, generation, _ = scene.identity(read=omp_chat.read)
    rewrite(scene.path, at, b"?")
    assert scene.identity(read=omp_chat.read)[:2] == (transcript, generation + 1)


def test_a_slot_that_is_written_in_two_pieces_is_one(scene):
    slot = title_slot("one").encode()
    scene.path.write_bytes(slot[:99])
    assert scene.texts(read=omp_chat.read) == []
    first = scene.identity(read=omp_chat.read)
    scene.append(slot[99:] + spoken("hello"))
    assert scene.texts(read=omp_chat.read) == ["hello"]
    tick()
    rewrite(scene.path, 0, title_slot("two").encode())
    assert scene.identity(read=omp_chat.read) == first


def test_without_a_slot_the_first_line_counts(scene):
    scene.path.write_bytes(line(type="session", id="one") + b"\n" + spoken("hello"))
    tick()
    transcript, generation, _ = scene.identity(read=omp_chat.read)
    rewrite(scene.path, 0, line(type="session", id="two"))
    assert scene.identity(read=omp_chat.read)[:2] == (transcript, generation + 1)


# What is let go


def test_inflated_files_stay_within_a_budget(tmp_path, monkeypatch):
    monkeypatch.setattr("agents9core.files.inflated.BUDGET_BYTES", 3 * len(answer("a")))
    transcripts = Transcripts(PathNumbers())
    open_before = len(os.listdir("/proc/self/fd"))
    for number in range(8):
        fork = Fork(tmp_path)
        fork.transcripts = transcripts
        fork.put(f"{number}.zst", zstandard.ZstdCompressor().compress(answer("a")), limit=len(answer("a")))
        fork.put("own", answer("b"))
        assert fork.texts() == ["a", "b"]
    assert len(os.listdir("/proc/self/fd")) == open_before + 3


def test_a_transcript_that_was_let_go_has_numbers_that_it_never_had(tmp_path, monkeypatch):
    monkeypatch.setattr("agents9core.chat.transcript.MOST_UNHELD", 4)
    monkeypatch.setattr(standing_module, "SNAPSHOT_SECONDS", -1)
    transcripts = Transcripts(PathNumbers())
    seen = set()
    for _ in range(3):
        for number in range(10):
            fork = Fork(tmp_path)
            fork.transcripts = transcripts
            fork.put(f"{number}", answer("a"))
            session = Session("", sources=(Source(Root(str(tmp_path)), (f"{number}",)),))
            seen.add(transcripts.snapshot(session, None).number)
    assert len(seen) == 30
    assert len(transcripts._known) <= 5
