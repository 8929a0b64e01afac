"""What the fact files say, and that nothing in them can move a terminal."""

import pytest

from agents9core.session import Session
from agents9core.tree.facts import LEAVES, SessionFacts, line

SAID_NS = 2_000_000_000
STARTED_NS = 1_000_000_000


def look(session=None, facts=None, titles=(), cwd=None, started_ns=STARTED_NS):
    return SessionFacts(session or Session("registry"), lambda: cwd, started_ns, facts or {}, titles)


def shown(seen):
    return {leaf.name: text for leaf in LEAVES if (text := leaf.show(seen)) is not None}


def test_what_does_not_apply_is_absent():
    assert shown(look(Session("none"), started_ns=0)) == {"via": "none"}


def test_every_leaf_of_a_full_session():
    session = Session("registry", id="s", title="t", name="n", status="waiting", waitingfor="w", version="2")
    assert shown(look(session, {"model": ("m", SAID_NS)}, cwd="/srv")) == {
        "via": "registry",
        "session": "s",
        "cwd": "/srv",
        "title": "t",
        "name": "n",
        "status": "waiting",
        "waitingfor": "w",
        "model": "m",
        "version": "2",
        "started": "1970-01-01T00:00:01Z",
    }


def test_waitingfor_is_there_only_while_it_waits():
    assert "waitingfor" not in shown(look(Session("registry", status="busy", waitingfor="permission")))


@pytest.mark.parametrize(
    ("facts", "title"),
    [
        ({"summary": ("s", 0)}, "s"),
        ({"summary": ("s", 0), "ai-title": ("a", 0)}, "a"),
        ({"summary": ("s", 0), "ai-title": ("a", 0), "custom-title": ("c", 0)}, "c"),
        ({"ai-title": ("a", 0), "custom-title": ("", 0)}, "a"),
    ],
)
def test_the_title_is_the_best_that_is_not_empty(facts, title):
    assert shown(look(facts=facts, titles=("custom-title", "ai-title", "summary")))["title"] == title


@pytest.mark.parametrize(
    ("turn", "when_ns", "status"),
    [
        ("busy", SAID_NS, "busy"),
        ("idle", SAID_NS, "idle"),
        ("idle", 0, "idle"),
        ("busy", 0, None),  # the turn of a process that has ended is not this one's
    ],
)
def test_a_turn_in_the_transcript_is_the_status(turn, when_ns, status):
    assert shown(look(facts={"turn": (turn, when_ns)})).get("status") == status


def test_the_record_s_status_goes_before_the_transcript_s():
    seen = look(Session("registry", status="idle"), {"turn": ("busy", SAID_NS)})
    assert shown(seen)["status"] == "idle"


@pytest.mark.parametrize(
    "bad", ["\n", "\r", "\x00", "\x1b", "\x7f", "\x9b", "\u202e", "\u2066", "\u2028", "\ud800"]
)
def test_what_could_move_a_terminal_is_replaced(bad):
    assert line(f"a{bad}b") == "a\ufffdb\n".encode()


def test_other_text_stays():
    assert line("naïve 漢字 😀") == "naïve 漢字 😀\n".encode()


def test_a_line_has_a_longest():
    assert len(line("x" * 1_000_000)) == 4097
