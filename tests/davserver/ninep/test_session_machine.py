"""Random conversations, checked against a model of what each fid stands for."""

import errno
import struct

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agents9core.memory import MemoryDirectory, MemoryFile
from davserver.ninep import messages as m
from davserver.ninep.dialect import DIALECTS
from davserver.ninep.wire import encode

from .conftest import Talk

FIDS = st.integers(0, 5)
NAMES = st.sampled_from(["a", "b", "f", "g", "..", "missing"])


def make_tree():
    files = [MemoryFile("f", b"file f"), MemoryFile("g", b"g" * 5000)]
    deep = MemoryDirectory("b", [MemoryFile("f", b"the deep f")])
    return MemoryDirectory("root", [MemoryDirectory("a", [deep, MemoryFile("g", b"")]), *files])


class Conversation(RuleBasedStateMachine):
    """The model: `places` has the lineage of each fid, `opened` the fids that are open."""

    @initialize(version=st.sampled_from(sorted(DIALECTS)))
    def begin(self, version):
        self.root = make_tree()
        self.talk = Talk(self.root, version, msize=8192)
        self.places = {0: (self.root,)}
        self.opened = set()
        self.gone = set()

    def refused(self, message, *numbers):
        """Check that *message* is refused for one of *numbers*; what is gone is EIDRM to plain 9P2000."""
        assert self.talk.refusal(message) in (*numbers, *([errno.EIDRM] if errno.ESTALE in numbers else []))

    def is_gone(self, fid):
        return self.places[fid][-1] in self.gone

    def step(self, places, name):
        """Return where *name* leads, or the number of the error."""
        node = places[-1]
        if isinstance(node, MemoryFile):
            return errno.ENOTDIR
        if name == "..":
            there = places[:-1] or places
        else:
            member = node._nodes.get(name)
            if member is None:
                return errno.ENOENT
            there = (*places, member)
        return errno.ESTALE if there[-1] in self.gone else there

    @rule(fid=FIDS)
    def attach(self, fid):
        message = self.talk.attach_message(fid)
        if fid in self.places:
            self.refused(message, errno.EBADF)
        else:
            self.talk.call(message)
            self.places[fid] = (self.root,)

    @rule(fid=FIDS, newfid=FIDS, names=st.lists(NAMES, max_size=4).map(tuple))
    def walk(self, fid, newfid, names):
        message = m.Twalk(1, fid, newfid, names)
        is_open = fid in self.opened and (newfid == fid or not self.talk.linux)
        if fid not in self.places or (newfid != fid and newfid in self.places) or is_open:
            self.refused(message, errno.EBADF)
            return
        places, reached = self.places[fid], 0
        for name in names:
            there = self.step(places, name)
            if isinstance(there, int):
                break
            places, reached = there, reached + 1
        if names and not reached:
            self.refused(message, there)
            return
        qids = self.talk.call(message).wqid
        assert len(qids) == reached
        if qids:
            assert struct.unpack("<BIQ", qids[-1])[2] == places[-1]._path
        if reached == len(names):
            self.places[newfid] = places

    @rule(fid=FIDS)
    def open(self, fid):
        message = self.talk.open_message(fid)
        if fid not in self.places:
            self.refused(message, errno.EBADF)
        elif fid in self.opened:
            self.refused(message, errno.ETXTBSY)
        elif self.is_gone(fid):
            self.refused(message, errno.ESTALE)
        else:
            self.talk.call(message)
            self.opened.add(fid)

    @rule(fid=FIDS, offset=st.integers(0, 6000), count=st.integers(0, 9000))
    def read(self, fid, offset, count):
        message = m.Tread(1, fid, offset, count)
        if fid not in self.opened:
            self.refused(message, errno.EBADF)
            return
        node = self.places[fid][-1]
        if isinstance(node, MemoryDirectory):
            return
        if self.is_gone(fid):
            self.refused(message, errno.ESTALE)
        else:
            assert self.talk.call(message).data == node.content()[offset : offset + min(count, 8192 - 11)]

    @rule(fid=FIDS)
    def list(self, fid):
        if fid in self.opened and isinstance(self.places[fid][-1], MemoryDirectory):
            expected = [name for name, node in self.places[fid][-1]._nodes.items() if node not in self.gone]
            assert self.talk.list_all(fid, 200) == expected

    @rule(fid=FIDS)
    def stat(self, fid):
        message = self.talk.stat_message(fid)
        if fid not in self.places:
            self.refused(message, errno.EBADF)
        elif self.is_gone(fid):
            self.refused(message, errno.ESTALE)
        else:
            assert struct.unpack("<BIQ", self.talk.stat(fid).qid)[2] == self.places[fid][-1]._path

    @rule(fid=FIDS, removes=st.booleans())
    def clunk(self, fid, removes):
        known = self.places.pop(fid, None)
        self.opened.discard(fid)
        if known is None:
            self.refused((m.Tremove if removes else m.Tclunk)(1, fid), errno.EBADF)
        elif removes:
            self.refused(m.Tremove(1, fid), errno.EROFS)
        else:
            self.talk.clunk(fid)

    @rule(tags=st.lists(st.integers(0, 0xFFFF), max_size=5), oldtag=st.integers(0, 0xFFFF))
    def flush(self, tags, oldtag):
        self.talk.session.receive_data(b"".join(encode(m.Tflush(tag, oldtag)) for tag in tags))
        assert [self.talk.read_reply() for _ in tags] == [m.Rflush(tag) for tag in tags]

    @rule()
    def version(self):
        self.talk.call(m.Tversion(m.NOTAG, 8192, self.talk.version))
        self.places.clear()
        self.opened.clear()

    @precondition(lambda self: len(self.gone) < 2)
    @rule(which=st.sampled_from([("f",), ("g",), ("a", "b", "f")]))
    def remove_file(self, which):
        node = self.root
        for name in which:
            node = node._nodes[name]
        node.remove()
        self.gone.add(node)

    @rule(which=st.sampled_from(["f", "g"]), data=st.binary(max_size=100))
    def grow_file(self, which, data):
        node = self.root._nodes[which]
        if node not in self.gone:
            node.append(data)

    @invariant()
    def fids_are_those_of_the_model(self):
        if hasattr(self, "talk"):
            assert self.talk.session.fid_count == len(self.places)


TestConversation = Conversation.TestCase
TestConversation.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
