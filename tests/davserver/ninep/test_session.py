"""What a 9P client can rely on, in each dialect."""

import errno
import stat as posix
import struct
from contextlib import contextmanager

import pytest

from agents9core.errors import Denied, Gone, TooLarge
from agents9core.memory import MemoryDirectory, MemoryFile
from agents9core.node import Directory, File, Reader, Row, Stat
from davserver.ninep import limits
from davserver.ninep import messages as m
from davserver.ninep.errors import WireError
from davserver.ninep.limits import MAX_FIDS, MAX_MSIZE, MIN_MSIZE
from davserver.ninep.session import NinepSession
from davserver.ninep.stat import BLANK_STAT, BLANK_STAT_U
from davserver.ninep.wire import decode, encode

from .conftest import MTIME_NS, OWNER, Talk, dirents

QTDIR = 0x80
DMDIR = 0x80000000
SECONDS, NANOSECONDS = divmod(MTIME_NS, 10**9)


def qid_parts(qid):
    return struct.unpack("<BIQ", qid)


def raw_version(session, version="9P2000", msize=65536, tag=m.NOTAG):
    session.receive_data(encode(m.Tversion(tag, msize, version)))
    return decode(m.Rversion, session.next_reply())


# --- session ---


def test_version_repeats_notag_and_gives_the_dialect(talk):
    assert talk.asked.tag == m.NOTAG
    assert talk.asked.version == talk.version


@pytest.mark.parametrize(
    ("asked", "given"), [(8192, 8192), (131072, 131072), (MAX_MSIZE, MAX_MSIZE), (0xFFFFFFFF, MAX_MSIZE)]
)
def test_msize_is_the_smaller_of_both(root, asked, given):
    assert raw_version(NinepSession(root, OWNER), msize=asked).msize == given


def test_msize_that_holds_no_reply_is_refused(root):
    session = NinepSession(root, OWNER)
    session.receive_data(encode(m.Tversion(m.NOTAG, MIN_MSIZE - 1, "9P2000")))
    assert decode(m.Rerror, session.next_reply()).ename == "protocol botch"


def test_unknown_version_is_answered_and_not_an_error(root):
    assert raw_version(NinepSession(root, OWNER), "HTTP/1.1").version == "unknown"


def test_unknown_suffix_is_plain_9p2000(root):
    assert raw_version(NinepSession(root, OWNER), "9P2000.x").version == "9P2000"


def test_nothing_but_version_is_answered_before_a_version(root):
    session = NinepSession(root, OWNER)
    session.receive_data(encode(m.Tattach(1, 0, m.NOFID, "glenda", "")))
    assert decode(m.Rerror, session.next_reply()).tag == 1


def test_nothing_but_version_is_answered_after_an_unknown_version(talk):
    assert talk.call(m.Tversion(m.NOTAG, 8192, "junk")).version == "unknown"
    talk.session.receive_data(encode(m.Tclunk(1, 0)))
    assert decode(m.Rerror, talk.session.next_reply()).ename == "Operation not supported"


def test_a_later_version_clunks_every_fid(talk):
    talk.reach(5, "long")
    talk.call(m.Tversion(m.NOTAG, 65536, talk.version))
    assert talk.session.fid_count == 0
    assert talk.refusal(talk.stat_message(0)) == errno.EBADF


def test_attach_gives_the_root(talk):
    kind, _, path = qid_parts(talk.attach(7).qid)
    assert kind == QTDIR
    assert path == qid_parts(talk.stat(0).qid)[2]


@pytest.mark.parametrize(("uname", "n_uname"), [("nobody", m.NOFID), ("", 0), ("", m.NOFID), ("ü", 1000)])
def test_attach_needs_no_known_user(talk, uname, n_uname):
    assert talk.call(talk.attach_message(7, uname=uname, n_uname=n_uname))


def test_several_attaches_share_qids(talk):
    talk.attach(7)
    first, second = talk.walk(0, 1, "version").wqid, talk.walk(7, 2, "version").wqid
    assert first == second


@pytest.mark.parametrize("aname", ["", "/"])
def test_attach_to_the_one_tree(talk, aname):
    assert talk.call(talk.attach_message(7, aname=aname))


@pytest.mark.parametrize("aname", ["/chat", "chat", "//chat/", "./chat", "/../chat/../chat"])
def test_attach_to_a_path(talk, aname):
    talk.attach(7)
    there = talk.walk(7, 2, "chat").wqid
    assert talk.call(talk.attach_message(8, aname=aname)).qid == there[-1]
    talk.walk(8, 9, "..")
    assert talk.walk(9, 12, "00000001-user").wqid
    assert talk.walk(8, 10, "00000001-user").wqid == talk.walk(2, 11, "00000001-user").wqid


@pytest.mark.parametrize("aname", ["/chat/none", "/version/x", "/chat\0"])
def test_attach_to_a_path_that_is_not_there_is_refused(talk, aname):
    assert talk.refusal(talk.attach_message(8, aname=aname)) in (errno.ENOENT, errno.ENOTDIR, errno.EPROTO)
    assert talk.refusal(talk.stat_message(8)) == errno.EBADF


def test_attach_to_an_unknown_tree_is_refused(talk):
    assert talk.refusal(talk.attach_message(7, aname="/other")) == errno.ENOENT
    assert talk.refusal(talk.stat_message(7)) == errno.EBADF


def test_attach_to_a_fid_in_use_is_refused(talk):
    assert talk.refusal(talk.attach_message(0)) == errno.EBADF


def test_attach_to_nofid_is_refused(talk):
    assert talk.refusal(talk.attach_message(m.NOFID)) == errno.EBADF


def test_attach_with_an_afid_is_refused(talk):
    assert talk.refusal(talk.attach_message(7, afid=3)) == errno.EBADF


def test_auth_is_refused_since_none_is_needed(talk):
    auth = m.Tauth(1, 9, "glenda", "") if talk.version == "9P2000" else m.TauthU(1, 9, "glenda", "", 1000)
    assert talk.refusal(auth) == errno.ENOENT  # what diod's clients take for "not needed"
    assert talk.session.fid_count == 1


def test_errors_have_the_shape_of_the_dialect(plain, unix, linux):
    missing = m.Twalk(3, 0, 1, ("nothing",))
    assert plain.ask(missing) == m.Rerror(3, "file does not exist")
    assert unix.ask(missing) == m.RerrorU(3, "file does not exist", errno.ENOENT)
    assert linux.ask(missing) == m.Rlerror(3, errno.ENOENT)


@pytest.mark.parametrize("version", ["9P2000", "9P2000.u"])
def test_n_uname_belongs_to_the_dialects_that_have_it(root, version):
    talk = Talk(root, version)
    other = m.TattachU(1, 7, m.NOFID, "", "", 0) if version == "9P2000" else m.Tattach(1, 7, m.NOFID, "", "")
    assert talk.refusal(other) == errno.EPROTO


# --- tags, flush ---


def test_replies_carry_the_tag_of_their_request(talk):
    for tag in (0, 1, 77, 0xFFFE, m.NOTAG):
        assert talk.ask(m.Tflush(tag, 5)).tag == tag


@pytest.mark.parametrize("oldtag", [0, 1, 999, m.NOTAG])
def test_flush_is_always_rflush(talk, oldtag):
    assert talk.ask(m.Tflush(1, oldtag)) == m.Rflush(1)


def test_what_is_flushed_is_answered_first(talk):
    talk.session.receive_data(encode(m.Twalk(4, 0, 1, ("version",))) + encode(m.Tflush(5, 4)))
    assert type(talk.read_reply()) is m.Rwalk
    assert talk.read_reply() == m.Rflush(5)
    assert talk.session.next_reply() is None
    talk.open(1)


def test_several_flushes_of_one_tag_are_answered_in_order(talk):
    flushes = [m.Tflush(tag, 1) for tag in (5, 6, 7)]
    talk.session.receive_data(b"".join(map(encode, flushes)))
    assert [talk.read_reply().tag for _ in flushes] == [5, 6, 7]


def test_two_requests_with_one_tag_are_both_answered(talk):
    talk.session.receive_data(
        encode(m.Twalk(4, 0, 1, ("version",))) + encode(m.Twalk(4, 0, 2, ("long",))) + encode(m.Tflush(4, 4))
    )
    assert [type(talk.read_reply()) for _ in range(3)] == [m.Rwalk, m.Rwalk, m.Rflush]


# --- fids, walk ---


def test_walk_without_names_clones(talk):
    assert talk.walk(0, 1).wqid == ()
    assert talk.stat(1).qid == talk.stat(0).qid


def test_walk_to_the_same_fid_moves_it(talk):
    talk.walk(0, 1)
    talk.walk(1, 1, "chat")
    assert talk.stat(1).qid == talk.walk(0, 2, "chat").wqid[0]


def test_walk_to_a_fid_in_use_is_refused(talk):
    talk.walk(0, 1)
    assert talk.refusal(m.Twalk(1, 0, 1, ("chat",))) == errno.EBADF


def test_walk_to_nofid_is_refused(talk):
    assert talk.refusal(m.Twalk(1, 0, m.NOFID, ())) == errno.EBADF


def test_walk_from_an_unknown_fid_is_refused(talk):
    assert talk.refusal(m.Twalk(1, 9, 1, ("chat",))) == errno.EBADF


@pytest.mark.parametrize("names", [(), ("00000000-assistant",)])
def test_walk_from_an_open_fid_is_refused_where_the_manual_says_so(stats, names):
    stats.reach(1, "chat")
    assert stats.refusal(m.Twalk(1, 1, 2, names)) == errno.EBADF


def test_walk_from_an_open_fid_works_in_linux(linux):
    linux.reach(1, "chat")
    assert len(linux.walk(1, 2, "00000000-assistant").wqid) == 1


def test_an_open_fid_is_never_moved(talk):
    talk.reach(1, "chat")
    assert talk.refusal(m.Twalk(1, 1, 1, ("..",))) == errno.EBADF


def test_walk_of_several_names_gives_a_qid_each(talk):
    qids = talk.walk(0, 1, "sub", "deep", "ü").wqid
    assert [qid_parts(qid)[0] for qid in qids] == [QTDIR, QTDIR, 0]


def test_walk_whose_first_name_is_missing_is_an_error(talk):
    assert talk.refusal(m.Twalk(1, 0, 1, ("nothing", "deep"))) == errno.ENOENT
    assert talk.refusal(m.Tclunk(1, 1)) == errno.EBADF


def test_walk_whose_later_name_is_missing_gives_the_qids_so_far(talk):
    assert len(talk.walk(0, 1, "sub", "deep", "nothing").wqid) == 2
    assert talk.refusal(m.Tclunk(1, 1)) == errno.EBADF


def test_partial_walk_to_the_same_fid_leaves_it_where_it_was(talk):
    talk.walk(0, 1)
    talk.walk(1, 1, "sub", "nothing")
    assert talk.stat(1).qid == talk.stat(0).qid


def test_sixteen_names_are_walked(talk):
    assert len(talk.walk(0, 1, *("sub", "..") * 8).wqid) == 16


def test_as_many_requests_as_there_are_tags_are_answered_in_order(linux):
    """None of them is kept but as the bytes that came; a tag is no place in any table."""
    linux.reach(1, "version")
    linux.session.receive_data(b"".join(encode(m.Tread(tag, 1, 0, 4)) for tag in range(0xFFFF)))
    assert [linux.read_reply().tag for _ in range(0xFFFF)] == list(range(0xFFFF))
    assert linux.read_reply() is None


@pytest.mark.parametrize("length", [255, 256, 4000])
def test_a_walk_of_sixteen_long_names_is_of_a_name_that_is_not_there(talk, length):
    assert talk.refusal(m.Twalk(1, 0, 1, ("n" * length,) * 16)) == errno.ENOENT
    assert talk.walk(0, 1, *("..",) * 15, "n" * length).wqid == (talk.stat(0).qid,) * 15
    assert talk.refusal(m.Tclunk(1, 1)) == errno.EBADF


def test_seventeen_names_are_refused(talk):
    assert talk.refusal(m.Twalk(1, 0, 1, ("sub",) * 17)) == errno.EPROTO


def test_dotdot_at_the_root_stays(talk):
    assert talk.walk(0, 1, "..", "..", "chat").wqid[0] == talk.stat(0).qid


def test_dotdot_goes_back_the_way_it_came(talk):
    talk.walk(0, 1, "sub", "deep")
    sub = talk.walk(0, 2, "sub").wqid[0]
    assert talk.walk(1, 3, "..").wqid == (sub,)
    assert talk.stat(3).qid == sub


def test_walk_through_a_file_is_not_a_directory(talk):
    talk.walk(0, 1, "version")
    assert talk.refusal(m.Twalk(1, 1, 2, ("x",))) == errno.ENOTDIR
    assert talk.refusal(m.Twalk(1, 1, 2, ("..",))) == errno.ENOTDIR
    assert len(talk.walk(0, 2, "version", "x").wqid) == 1


def test_clone_of_a_file(talk):
    talk.walk(0, 1, "version")
    talk.walk(1, 2)
    talk.open(2)
    assert talk.read(2) == b"agents9\n"


@pytest.mark.parametrize("name", ["", ".", "a/b", "a\0b", "/"])
def test_a_name_that_cannot_be_is_not_there(talk, name):
    assert talk.refusal(m.Twalk(1, 0, 1, (name,))) == errno.ENOENT


def test_a_name_that_is_not_utf8_is_not_there(talk):
    frame = encode(m.Twalk(1, 0, 1, ("aa",))).replace(b"aa", b"\xff\xfe")
    assert talk.refusal_raw(frame) == errno.ENOENT


def test_clunk_frees_the_fid(talk):
    talk.walk(0, 1)
    talk.clunk(1)
    assert talk.refusal(m.Tclunk(1, 1)) == errno.EBADF
    talk.walk(0, 1)


def test_remove_is_refused_and_clunks(talk):
    talk.walk(0, 1, "version")
    assert talk.refusal(m.Tremove(1, 1)) == errno.EROFS
    assert talk.refusal(m.Tclunk(1, 1)) == errno.EBADF


def test_remove_of_an_unknown_fid(talk):
    assert talk.refusal(m.Tremove(1, 9)) == errno.EBADF


def test_fids_are_bounded(talk, monkeypatch):
    monkeypatch.setattr(limits, "MAX_FIDS", 100)
    for fid in range(1, 100):
        talk.walk(0, fid)
    assert talk.refusal(m.Twalk(1, 0, 100, ())) == errno.ENFILE
    assert talk.refusal(talk.attach_message(100)) == errno.ENFILE
    talk.clunk(1)
    talk.walk(0, 100)


def test_as_many_fids_as_a_loose_mount_of_a_full_chat_keeps():
    assert MAX_FIDS >= 262_144 + 1000


# --- open ---


@pytest.mark.parametrize("mode", [1, 2, 0x10, 0x40, 0x11, 0x12])
def test_open_for_writing_is_refused(stats, mode):
    for fid, name in ((1, "version"), (2, "chat")):
        stats.walk(0, fid, name)
        assert stats.refusal(m.Topen(1, fid, mode)) == errno.EROFS
        stats.open(fid)


@pytest.mark.parametrize("mode", [0, 3])
def test_open_for_reading_or_executing(stats, mode):
    stats.walk(0, 1, "version")
    stats.call(m.Topen(1, 1, mode))
    assert stats.read(1) == b"agents9\n"


@pytest.mark.parametrize("flags", [0o1, 0o2, 0o1000, 0o101, 0o100001])
def test_lopen_for_writing_is_refused(linux, flags):
    linux.walk(0, 1, "version")
    assert linux.refusal(m.Tlopen(1, 1, flags)) == errno.EROFS
    linux.open(1)


@pytest.mark.parametrize("flags", [0, 0o100000, 0o304000, 0o2000000, 0o4000])
def test_lopen_ignores_flags_that_do_not_write(linux, flags):
    linux.walk(0, 1, "chat")
    linux.call(m.Tlopen(1, 1, flags))
    assert len(linux.list_all(1)) == 40


def test_lopen_of_what_exists_may_say_create(linux):
    linux.walk(0, 1, "version")
    linux.call(m.Tlopen(1, 1, 0o100100))
    assert linux.read(1) == b"agents9\n"


def test_open_gives_the_qid_and_leaves_the_size_to_msize(talk):
    talk.walk(0, 1, "version")
    opened = talk.open(1)
    assert opened.qid == talk.stat(1).qid
    assert opened.iounit == 0


def test_open_of_an_open_fid_is_refused(talk):
    talk.reach(1, "version")
    assert talk.refusal(talk.open_message(1)) == errno.ETXTBSY


def test_open_of_an_unknown_fid(talk):
    assert talk.refusal(talk.open_message(9)) == errno.EBADF


WRITES_2000 = [m.Twrite(1, 1, 0, b"x"), m.Twstat(1, 1, b"\0" * 49)]
WRITES_LINUX = [
    m.Twrite(1, 1, 0, b"x"),
    m.Tlcreate(1, 1, "new", 0o101, 0o600, 0),
    m.Tsymlink(1, 1, "new", "../old", 0),
    m.Tmknod(1, 1, "new", 0o600, 1, 3, 0),
    m.Tmkdir(1, 1, "new", 0o700, 0),
    m.Tlink(1, 1, 2, "new"),
    m.Trename(1, 1, 0, "new"),
    m.Trenameat(1, 1, "old", 1, "new"),
    m.Tunlinkat(1, 1, "version", 0),
    m.Tsetattr(1, 1, 1, 0o600, 0, 0, 0, 0, 0, 0, 0),
    m.Txattrcreate(1, 1, "user.x", 5, 0),
]


def check_write_is_refused(talk, message):
    assert talk.refusal(message) == errno.EBADF
    talk.walk(0, 1, "chat")
    assert talk.refusal(message) == errno.EROFS


@pytest.mark.parametrize("message", WRITES_2000, ids=lambda message: type(message).__name__)
def test_writes_are_refused(stats, message):
    check_write_is_refused(stats, message)


def test_create_is_refused(plain, unix):
    check_write_is_refused(plain, m.Tcreate(1, 1, "new", 0o600, 1))
    check_write_is_refused(unix, m.TcreateU(1, 1, "new", 0o600, 1, ""))


@pytest.mark.parametrize("message", WRITES_LINUX, ids=lambda message: type(message).__name__)
def test_writes_are_refused_in_linux(linux, message):
    check_write_is_refused(linux, message)


def test_wstat_that_changes_nothing_is_a_sync(plain, unix):
    assert plain.call(m.Twstat(1, 0, BLANK_STAT)) == m.Rwstat(1)
    assert unix.call(m.Twstat(1, 0, BLANK_STAT_U)) == m.Rwstat(1)


def test_blank_stat_is_what_the_manual_lays_out():
    nothing = struct.pack("<HIBIQIIIQ", 0xFFFF, m.NOFID, 0xFF, m.NOFID, 2**64 - 1, *(m.NOFID,) * 3, 2**64 - 1)
    body = nothing + bytes(8)
    assert struct.pack("<H", len(body)) + body == BLANK_STAT


# --- read ---


def test_read_from_an_offset(talk):
    talk.reach(1, "long")
    assert talk.read(1, 300, 5) == bytes((300 + i) % 256 for i in range(5))


def test_read_of_a_whole_file_in_pieces(talk):
    talk.reach(1, "long")
    content, offset = b"", 0
    while piece := talk.read(1, offset, 10_000):
        content, offset = content + piece, offset + len(piece)
    assert content == bytes(range(256)) * 1200


@pytest.mark.parametrize("offset", [8, 9, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_read_at_and_after_the_end_is_empty(talk, offset):
    talk.reach(1, "version")
    assert talk.read(1, offset) == b""


def test_read_of_nothing(talk):
    talk.reach(1, "version")
    assert talk.read(1, 0, 0) == b""


@pytest.mark.parametrize("count", [65536, 0xFFFFFFFF])
def test_read_never_gives_more_than_msize_holds(talk, count):
    talk.reach(1, "long")
    assert len(talk.read(1, 0, count)) == 65536 - 11


def test_read_of_a_fid_that_is_not_open(talk):
    talk.walk(0, 1, "version")
    assert talk.refusal(m.Tread(1, 1, 0, 10)) == errno.EBADF
    assert talk.refusal(m.Tread(1, 9, 0, 10)) == errno.EBADF


def test_read_follows_a_growing_file(talk, version_file):
    talk.reach(1, "version")
    assert talk.read(1, 8) == b""
    version_file.append(b"more\n")
    assert talk.read(1, 8) == b"more\n"


def test_read_of_what_has_gone_is_an_error_and_never_empty(talk, version_file):
    talk.reach(1, "version")
    version_file.remove()
    gone = errno.EIDRM if talk.version == "9P2000" else errno.ESTALE
    assert talk.refusal(m.Tread(1, 1, 0, 100)) == gone
    assert talk.refusal(m.Tread(1, 1, 8, 100)) == gone


def test_plain_9p2000_says_gone_in_words_that_linux_knows(plain, version_file):
    plain.walk(0, 1, "version")
    version_file.remove()
    assert plain.ask(m.Tstat(1, 1)) == m.Rerror(1, "file has been removed")


def test_every_operation_on_what_has_gone_says_so(talk, version_file):
    talk.walk(0, 1, "version")
    version_file.remove()
    gone = errno.EIDRM if talk.version == "9P2000" else errno.ESTALE
    assert talk.refusal(talk.stat_message(1)) == gone
    assert talk.refusal(talk.open_message(1)) == gone
    assert talk.refusal(m.Twalk(1, 0, 2, ("version",))) == gone
    talk.clunk(1)


class CountingReader(Reader):
    def __init__(self) -> None:
        self.closed = 0

    def read(self, offset, count):
        return b""

    def close(self):
        self.closed += 1


class OneFile(File):
    """A file whose open is given."""

    def __init__(self, opening) -> None:
        self.name = "one"
        self.open = opening

    def stat(self):
        return Stat(99, 1, False, 0, 0)

    def open(self):
        raise NotImplementedError


def talk_with(version, node):
    return Talk(MemoryDirectory("root", [node]), version)


@pytest.mark.parametrize("end", ["clunk", "remove", "version", "close"])
def test_a_reader_is_closed_once(end):
    reader = CountingReader()
    talk = talk_with("9P2000.L", OneFile(lambda: reader))
    talk.reach(1, "one")
    match end:
        case "clunk":
            talk.clunk(1)
        case "remove":
            talk.ask(m.Tremove(1, 1))
        case "version":
            talk.call(m.Tversion(m.NOTAG, 8192, "9P2000.L"))
    talk.session.close()
    assert reader.closed == 1


def test_a_file_that_may_not_be_read(talk):
    def refuse():
        raise Denied("one")

    other = talk_with(talk.version, OneFile(refuse))
    other.walk(0, 1, "one")
    assert other.refusal(other.open_message(1)) == errno.EACCES


def test_a_bug_in_a_node_is_logged_and_an_error_reply(talk, caplog):
    def fail():
        raise RuntimeError("a bug")

    other = talk_with(talk.version, OneFile(fail))
    other.walk(0, 1, "one")
    assert other.refusal(other.open_message(1)) == errno.EIO
    assert "RuntimeError: a bug" in caplog.text
    caplog.clear()
    other.walk(0, 2)


# --- directories ---


def test_a_directory_is_listed_whole_and_in_order(talk):
    talk.reach(1, "chat")
    assert talk.list_all(1) == [f"{i:08d}-{'user' if i % 2 else 'assistant'}" for i in range(40)]


@pytest.mark.parametrize("count", [100, 150, 333, 1000])
def test_entries_are_whole_whatever_the_count(talk, count):
    talk.reach(1, "chat")
    assert len(talk.list_all(1, count)) == 40


@pytest.mark.parametrize("first", [300, 1000])
@pytest.mark.parametrize("count", [0, 1, 20])
def test_a_count_too_small_for_an_entry_is_no_end_and_the_next_read_goes_on(talk, first, count):
    talk.reach(1, "chat")
    before, position = talk.list_some(1, 0, first)
    assert talk.refusal(talk.list_message(1, position, count)) == errno.EINVAL
    rest, _ = talk.list_some(1, position, 60_000)
    assert len(before) + len(rest) == 40


@pytest.mark.parametrize("count", [0, 10, 30])
def test_a_count_too_small_at_the_start(talk, count):
    talk.reach(1, "chat")
    assert talk.refusal(talk.list_message(1, 0, count)) == errno.EINVAL
    assert len(talk.list_all(1)) == 40


@pytest.mark.parametrize("count", [300, 500, 1000])
def test_linux_fills_the_rest_of_its_buffer(talk, count):
    """Its 9P2000 and .u ask for what the last read left; an error would hide the whole directory."""
    if talk.linux:
        return
    talk.reach(1, "chat")
    names, position = [], 0
    while True:
        room = count
        while room and (got := talk.list_some(1, position, room))[0]:
            room -= got[1] - position
            position = got[1]
            names += [entry.name for entry in got[0]]
        if room == count:
            break
    assert len(names) == 40


def test_an_empty_directory_has_ended_whatever_the_count(talk, chat):
    talk.reach(1, "chat")
    _, end = talk.list_some(1, 0, 60_000)
    assert talk.list_some(1, end, 3) == ([], end)


def test_the_end_is_stable(talk):
    talk.reach(1, "chat")
    entries, position = talk.list_some(1, 0, 60_000)
    assert len(entries) == 40
    for _ in range(3):
        assert talk.list_some(1, position, 60_000) == ([], position)


def test_the_start_begins_again(talk):
    talk.reach(1, "chat")
    talk.list_some(1, 0, 500)
    assert len(talk.list_all(1)) == 40


def test_a_directory_that_changes_is_listed_as_it_was(talk, chat):
    talk.reach(1, "chat")
    entries, position = talk.list_some(1, 0, 500)
    chat.say("user", b"late")
    names = [entry.name for entry in entries]
    while entries:
        entries, position = talk.list_some(1, position, 500)
        names += [entry.name for entry in entries]
    assert len(names) == len(set(names)) == 40
    assert len(talk.list_all(1)) == 41


def test_a_directory_that_has_gone_is_not_listed_on(talk, chat):
    talk.reach(1, "chat")
    _, position = talk.list_some(1, 0, 500)
    chat.remove()
    gone = errno.EIDRM if talk.version == "9P2000" else errno.ESTALE
    assert talk.refusal(talk.list_message(1, position, 500)) == gone
    assert talk.refusal(talk.list_message(1, 0, 500)) == gone


def test_a_listing_skips_what_has_gone(talk, root, version_file):
    version_file.remove()
    talk.reach(1)
    assert "version" not in talk.list_all(1)
    assert "long" in talk.list_all(1)


def test_an_offset_within_a_directory_is_refused(stats):
    stats.reach(1, "chat")
    _, position = stats.list_some(1, 0, 500)
    for offset in (1, position - 1, position + 1, 1 << 63):
        assert stats.refusal(m.Tread(1, 1, offset, 500)) == errno.ESPIPE
    assert stats.list_some(1, position, 500)[0]


def test_any_earlier_cookie_is_an_offset(linux):
    linux.reach(1, "chat")
    everything = dirents(linux.call(m.Treaddir(1, 1, 0, 60_000)).data)
    for entry in reversed(everything):
        rest = dirents(linux.call(m.Treaddir(1, 1, entry.cookie, 60_000)).data)
        assert rest == everything[entry.cookie :]
    assert [entry.cookie for entry in everything] == list(range(1, 41))


@pytest.mark.parametrize("cookie", [41, 1 << 31, 1 << 63, (1 << 64) - 1])
def test_a_cookie_past_the_end_is_the_end(linux, cookie):
    linux.reach(1, "chat")
    assert linux.call(m.Treaddir(1, 1, cookie, 1000)).data == b""


def test_a_cookie_of_an_earlier_open_goes_on_from_there(linux):
    linux.reach(1, "chat")
    assert dirents(linux.call(m.Treaddir(1, 1, 38, 1000)).data)[0].name == "00000038-assistant"


def test_tread_of_a_directory_is_refused_in_linux(linux):
    linux.reach(1, "chat")
    assert linux.refusal(m.Tread(1, 1, 0, 1000)) == errno.EISDIR


def test_readdir_of_a_file_is_refused(linux):
    linux.reach(1, "version")
    assert linux.refusal(m.Treaddir(1, 1, 0, 1000)) == errno.ENOTDIR


def test_readdir_of_a_directory_that_is_not_open(linux):
    linux.walk(0, 1, "chat")
    assert linux.refusal(m.Treaddir(1, 1, 0, 1000)) == errno.EBADF
    assert linux.refusal(m.Treaddir(1, 9, 0, 1000)) == errno.EBADF


def test_a_listing_never_exceeds_msize(talk):
    talk.session.receive_data(encode(m.Tversion(m.NOTAG, 1024, talk.version)))
    assert decode(m.Rversion, talk.session.next_reply()).msize == 1024
    talk.attach(0)
    talk.reach(1, "chat")
    entries, _ = talk.list_some(1, 0, 1013)
    talk.session.receive_data(encode(talk.list_message(1, 0, 0xFFFFFFFF)))
    assert len(talk.session.next_reply()) <= 1024
    assert entries


class Rows(Directory):
    """A directory of many rows that are made when asked for; counts how many."""

    def __init__(self, number) -> None:
        self.name = "rows"
        self.number = number
        self.looks = self.made = 0

    def stat(self):
        return Stat(7, 1, True, 0, 0)

    def walk(self, name):
        raise NotImplementedError

    def members(self):
        self.looks += 1
        return LazyRows(self)


class LazyRows:
    def __init__(self, directory) -> None:
        self.directory = directory

    def __getitem__(self, wanted):
        found = range(self.directory.number)[wanted]
        self.directory.made += len(found)
        return [Row(f"{i:08d}-user", Stat(i + 1, 1, False, 0, 0)) for i in found]


def test_resuming_does_not_build_the_list_again(talk):
    rows = Rows(20_000)
    other = talk_with(talk.version, rows)
    other.session._root.node.walk = lambda name: rows
    other.reach(1, "rows")
    assert len(other.list_all(1, 8192)) == 20_000
    assert rows.looks == 1
    assert rows.made < 20_000 * 1.5


def test_a_chat_with_too_many_messages_says_so(talk, chat):
    chat._cap = 10
    talk.reach(1, "chat")
    assert talk.refusal(talk.list_message(1, 0, 1000)) == TooLarge.errno
    assert talk.walk(0, 2, "chat", "00000001-user").wqid


# --- stat ---


def test_stat_has_two_sizes(stats):
    data = stats.call(m.Tstat(1, 0)).stat
    assert struct.unpack_from("<H", data)[0] == len(data) - 2


def test_stat_of_a_file(stats):
    stats.walk(0, 1, "version")
    record = stats.stat(1)
    assert (record.mode, record.length, record.mtime, record.atime) == (0o400, 8, SECONDS, SECONDS)
    assert record.strings[:4] == ("version", "glenda", "sys", "glenda")


def test_stat_of_a_directory(stats):
    stats.walk(0, 1, "chat")
    record = stats.stat(1)
    assert (record.mode, record.length) == (DMDIR | 0o500, 0)
    assert record.mtime == SECONDS + 39


def test_stat_of_the_root_is_named_slash(stats):
    assert stats.stat(0).name == "/"


def test_unix_stat_has_the_owner_in_numbers(unix):
    record = unix.stat(0)
    assert record.strings[4] == ""
    assert record.numbers == (1000, 100, 0xFFFFFFFF)


@pytest.mark.parametrize(("mtime_ns", "seconds"), [(-1, 0), (-(10**18), 0), (0, 0), (10**19, 0xFFFFFFFF)])
def test_stat_keeps_times_in_32_bits(mtime_ns, seconds):
    talk = talk_with("9P2000", MemoryFile("one", b"", mtime_ns))
    talk.walk(0, 1, "one")
    assert talk.stat(1).mtime == seconds


def test_getattr_of_a_file(linux):
    linux.walk(0, 1, "long")
    reply = linux.stat(1)
    assert reply.mode == posix.S_IFREG | 0o400
    assert (reply.uid, reply.gid, reply.nlink, reply.rdev) == (1000, 100, 1, 0)
    assert (reply.size, reply.blksize, reply.blocks) == (307_200, 4096, 600)
    for name in ("atime", "mtime", "ctime"):
        assert (getattr(reply, f"{name}_sec"), getattr(reply, f"{name}_nsec")) == (SECONDS, NANOSECONDS)


def test_getattr_of_a_directory(linux):
    linux.walk(0, 1, "chat")
    reply = linux.stat(1)
    assert reply.mode == posix.S_IFDIR | 0o500
    assert (reply.size, reply.uid, reply.gid) == (0, 1000, 100)


@pytest.mark.parametrize("mask", [0, 1, 0x7FF, 0x17FF, 0x3FFF, 0xFFFFFFFFFFFFFFFF])
def test_getattr_has_all_basic_fields_whatever_was_asked(linux, mask):
    reply = linux.call(m.Tgetattr(1, 0, mask))
    assert reply.valid == 0x7FF
    assert reply[-4:] == (0, 0, 0, 0)


def test_getattr_of_a_time_before_1970(linux):
    talk = talk_with("9P2000.L", MemoryFile("one", b"", -1))
    talk.walk(0, 1, "one")
    reply = talk.stat(1)
    assert (reply.mtime_sec, reply.mtime_nsec) == (2**64 - 1, 999_999_999)


def test_the_directory_bit_is_the_same_everywhere(stats, linux):
    for talk in (stats, linux):
        talk.reach(1)
        entries, _ = talk.list_some(1, 0, 60_000)
        for number, entry in enumerate(entries):
            fid = 10 + number
            walked = talk.walk(0, fid, entry.name).wqid[0]
            status = talk.stat(fid)
            is_dir = entry.name in ("chat", "sub")
            assert walked == entry.qid == status.qid
            assert qid_parts(walked)[0] == (QTDIR if is_dir else 0)
            if talk.linux:
                assert entry.type == (4 if is_dir else 8)
                assert posix.S_ISDIR(status.mode) == is_dir
            else:
                assert bool(status.mode & DMDIR) == bool(entry.mode & DMDIR) == is_dir


def test_stat_of_an_unknown_fid(talk):
    assert talk.refusal(talk.stat_message(9)) == errno.EBADF


def test_statfs_is_answered(linux):
    reply = linux.call(m.Tstatfs(1, 0))
    assert (reply.bsize, reply.namelen) == (4096, 255)
    assert linux.refusal(m.Tstatfs(1, 9)) == errno.EBADF


def test_statfs_is_of_no_type_that_gnu_tail_takes_for_local(linux):
    v9fs = 0x01021997
    assert linux.call(m.Tstatfs(1, 0)).type != v9fs


def test_xattrs_are_not_supported_so_that_ls_asks_once(linux):
    assert linux.refusal(m.Txattrwalk(1, 0, 5, "security.selinux")) == errno.EOPNOTSUPP
    assert linux.refusal(m.Txattrwalk(1, 0, 5, "")) == errno.EOPNOTSUPP
    assert linux.refusal(m.Txattrwalk(1, 9, 5, "")) == errno.EBADF


def test_readlink_is_of_no_link(linux):
    assert linux.refusal(m.Treadlink(1, 0)) == errno.EINVAL


def test_locks_are_granted(linux):
    assert linux.call(m.Tlock(1, 0, 0, 1, 0, 0, 77, "host")) == m.Rlock(1, 0)
    assert linux.refusal(m.Tlock(1, 9, 0, 1, 0, 0, 77, "host")) == errno.EBADF


def test_nothing_is_ever_locked(linux):
    assert linux.call(m.Tgetlock(1, 0, 1, 5, 6, 77, "host")) == m.Rgetlock(1, 2, 5, 6, 77, "host")


def test_fsync_succeeds(linux):
    assert linux.call(m.Tfsync(1, 0, 0)) == m.Rfsync(1)
    assert linux.refusal(m.Tfsync(1, 9, 1)) == errno.EBADF


# --- qid ---


def test_qid_is_the_identity_of_the_node(talk, version_file):
    stat = version_file.stat()
    assert qid_parts(talk.walk(0, 1, "version").wqid[0]) == (0, stat.version, stat.path)


def test_qid_version_moves_with_the_content_and_path_stays(talk, version_file):
    _, before, path = qid_parts(talk.walk(0, 1, "version").wqid[0])
    version_file.append(b"x")
    _, after, same = qid_parts(talk.stat(1).qid)
    assert after != before
    assert same == path


def test_qid_version_is_the_low_32_bits():
    class Old(OneFile):
        def stat(self):
            return Stat((1 << 64) - 1, (5 << 32) | 7, False, 0, 0)

    talk = talk_with("9P2000.L", Old(CountingReader))
    assert qid_parts(talk.walk(0, 1, "one").wqid[0]) == (0, 7, (1 << 64) - 1)


# --- malformed input ---


@pytest.mark.parametrize("size", [0, 1, 4, 6, 65537, 0xFFFFFFFF])
def test_a_frame_of_an_impossible_size_is_no_9p(talk, size):
    talk.session.receive_data(struct.pack("<I", size))
    with pytest.raises(WireError):
        talk.session.next_reply()
    with pytest.raises(WireError):
        talk.session.next_reply()


def test_before_a_version_frames_are_short(root):
    session = NinepSession(root, OWNER)
    session.receive_data(struct.pack("<I", 8193))
    with pytest.raises(WireError):
        session.next_reply()


def test_a_frame_that_is_all_header_is_answered(talk):
    assert talk.ask_raw(struct.pack("<IBH", 7, 120, 3)).tag == 3


@pytest.mark.parametrize("kind", [0, 6, 7, 99, 101, 106, 111, 117, 121, 255])
def test_what_is_no_request_is_refused(talk, kind):
    assert talk.refusal_raw(struct.pack("<IBH", 7, kind, 9)) == errno.EOPNOTSUPP
    talk.walk(0, 1)


@pytest.mark.parametrize("message", [m.Topen(1, 0, 0), m.Tstat(1, 0), m.Twstat(1, 0, b"")])
def test_linux_has_no_requests_of_9p2000_that_it_replaced(linux, message):
    assert linux.refusal(message) == errno.EOPNOTSUPP


@pytest.mark.parametrize("message", [m.Tlopen(1, 0, 0), m.Tgetattr(1, 0, 0), m.Treaddir(1, 0, 0, 9)])
def test_9p2000_has_no_requests_of_linux(stats, message):
    assert stats.refusal(message) == errno.EOPNOTSUPP


def test_a_body_that_is_too_short_or_too_long_is_an_error(talk):
    for message in (m.Tclunk(1, 5), m.Twalk(1, 0, 5, ("chat",)), talk.attach_message(5), m.Tread(1, 0, 0, 1)):
        frame = encode(message)
        for body in (frame[7:-1], frame[7:] + b"\0"):
            assert talk.refusal_raw(struct.pack("<IBH", 7 + len(body), frame[4], 2) + body) == errno.EPROTO
    assert talk.session.fid_count == 1


def test_a_string_past_the_end_does_not_reach_into_the_next_frame(talk):
    long = encode(m.Twalk(1, 0, 5, ("chat",))).replace(b"\x04\0chat", b"\xff\0chat")
    talk.session.receive_data(long + encode(m.Twalk(2, 0, 5, ("chat",))) * 20)
    assert type(talk.read_reply()) in (m.Rerror, m.RerrorU, m.Rlerror)
    assert talk.read_reply().tag == 2


def test_a_user_name_that_is_not_utf8_is_an_error(talk):
    frame = encode(talk.attach_message(5, uname="aa")).replace(b"aa", b"\xff\xfe")
    assert talk.refusal_raw(frame) == errno.EPROTO


def conversation(version):
    linux = version == "9P2000.L"
    attach = (
        m.Tattach(1, 0, m.NOFID, "g", "") if version == "9P2000" else m.TattachU(1, 0, m.NOFID, "g", "", 1)
    )
    opening = (lambda fid: m.Tlopen(3, fid, 0)) if linux else (lambda fid: m.Topen(3, fid, 0))
    listing = m.Treaddir(9, 2, 0, 900) if linux else m.Tread(9, 2, 0, 900)
    return [
        m.Tversion(m.NOTAG, 8192, version),
        attach,
        m.Twalk(2, 0, 1, ("sub", "deep", "ü")),
        opening(1),
        m.Tread(4, 1, 0, 100),
        m.Twalk(5, 0, 3, ("nothing",)),
        m.Twalk(6, 0, 2, ("chat",)),
        opening(2),
        listing,
        m.Tflush(10, 9),
        m.Tclunk(11, 1),
        m.Tremove(12, 2),
    ]


@pytest.mark.parametrize("version", ["9P2000", "9P2000.u", "9P2000.L"])
@pytest.mark.parametrize("piece", [1, 2, 3, 7, 50])
def test_any_split_gives_the_same_replies(root, version, piece):
    stream = b"".join(map(encode, conversation(version)))
    whole, split = NinepSession(root, OWNER), NinepSession(root, OWNER)
    whole.receive_data(stream)
    expected, got = list(iter(whole.next_reply, None)), []
    for start in range(0, len(stream), piece):
        split.receive_data(stream[start : start + piece])
        got += iter(split.next_reply, None)
    assert got == expected
    assert len(got) == len(conversation(version))


def test_one_reply_a_call_whatever_arrived(talk):
    talk.reach(1, "long")
    talk.session.receive_data(encode(m.Tread(1, 1, 0, 65536)) * 1000)
    assert len(talk.session.next_reply()) == 65536
    assert len(talk.session._buffer) < 65536


def test_replies_are_joined_up_to_a_room(talk):
    talk.reach(1, "long")
    read = encode(m.Tread(1, 1, 0, 1000))
    talk.session.receive_data(read * 10 + read[:8])
    first, rest = talk.session.next_replies(2500), talk.session.next_replies(1 << 16)
    assert (len(first), len(rest)) == (3 * 1011, 7 * 1011)
    assert talk.session.next_replies(1 << 16) == b""


def test_what_comes_before_a_wire_error_is_answered(talk):
    talk.session.receive_data(encode(m.Tflush(1, 9)) + encode(m.Tflush(2, 9)) + b"\0\0\0\0")
    assert talk.session.next_replies(1 << 16) == encode(m.Rflush(1)) + encode(m.Rflush(2))
    for _ in range(2):
        with pytest.raises(WireError):
            talk.session.next_replies(1 << 16)


def test_requests_that_came_together_are_answered_from_one_look(root, monkeypatch):
    entered = []

    @contextmanager
    def one_request():
        entered.append("begin")
        yield
        entered.append("end")

    monkeypatch.setattr(root, "one_request", one_request)
    session = NinepSession(root, OWNER)
    session.receive_data(encode(m.Tversion(m.NOTAG, 8192, "9P2000")) * 3)
    session.next_replies(1 << 16)
    assert entered == ["begin", "end"]


def test_what_the_trace_is_told(root):
    told = []
    session = NinepSession(
        root, OWNER, lambda direction, message: told.append((direction, type(message).__name__))
    )
    for message in (m.Tversion(m.NOTAG, 8192, "9P2000"), m.Tclunk(1, 5)):
        session.receive_data(encode(message))
        session.next_reply()
    assert told == [("->", "Tversion"), ("<-", "Rversion"), ("->", "Tclunk"), ("<-", "Rerror")]


def test_a_gone_root_refuses_attach():
    root = MemoryDirectory("root")
    talk = Talk(root, "9P2000.L")
    root.remove()
    assert talk.refusal(talk.attach_message(3)) == Gone.errno
