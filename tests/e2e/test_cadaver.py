"""cadaver, by its commands."""

import pytest

pytestmark = pytest.mark.e2e

AGENT = "/active/claude/345104"


@pytest.fixture
def cadaver(http_door, run, tmp_path):
    def session(*commands):
        said = run("cadaver", http_door.url + "/", input="\n".join([*commands, "quit", ""]), cwd=tmp_path)
        assert said.returncode == 0, said.stderr
        return said.stdout

    return session


def test_it_connects_and_lists(cadaver):
    said = cadaver(f"ls {AGENT}")
    assert "succeeded" in said
    assert "Coll:" in said
    assert "title" in said
    assert "16000" in said


def test_it_shows_and_downloads(cadaver, tmp_path, http_door):
    assert "Let me look." in cadaver(f"cd {AGENT}/chat", "cat 00000001-assistant")
    cadaver("get long")
    assert (tmp_path / "long").read_bytes() == http_door.root.walk("long").content()


def test_it_shows_properties(cadaver):
    assert "getetag" in cadaver(f"propget {AGENT}/title")


def test_nothing_can_be_written(cadaver, tmp_path):
    (tmp_path / "new").write_text("new")
    said = cadaver("put new", "mkcol more", f"delete {AGENT}/title", f"lock {AGENT}/title")
    assert said.count("405") >= 3
    assert "title" in cadaver(f"ls {AGENT}")
