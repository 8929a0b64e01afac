"""What no store of transcripts may be, wherever a link to it stands."""

import os

import pytest

from agents9core.errors import Denied
from agents9core.files.private import may_be_home, may_be_store
from agents9core.files.root import Root


@pytest.fixture
def user(tmp_path, monkeypatch):
    user = tmp_path / "home" / "user"
    user.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(user))
    return user


CLOSED = [".", "..", "../..", "/", ".ssh", ".ssh/keys", ".gnupg", ".aws", ".config", ".config/gcloud",
          ".local/share", ".local/share/keyrings", ".mozilla/firefox", ".password-store/work"]  # fmt: skip
OPEN = [".claude/projects", "projects", "data/.codex/sessions", ".config/claude/projects", ".local/share/omp",
        "../other", ".sshd"]  # fmt: skip


@pytest.mark.parametrize("path", CLOSED)
def test_a_home_what_it_lies_in_and_directories_of_secrets_are_no_stores(user, path):
    assert not may_be_store(os.path.realpath(user / path))
    assert not may_be_home(str(user / path))


@pytest.mark.parametrize("path", OPEN)
def test_any_other_directory_may_be_one(user, path):
    assert may_be_store(os.path.realpath(user / path))


def test_a_home_behind_a_link_is_the_home(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setenv("HOME", str(tmp_path / "link"))
    assert not may_be_home(str(tmp_path / "real"))
    assert not may_be_home(str(tmp_path / "link"))


@pytest.mark.parametrize("path", [path for path in CLOSED if path != "/"])
def test_nothing_is_opened_behind_a_link_to_one(user, tmp_path, path):
    target = user / path
    target.mkdir(parents=True, exist_ok=True)
    (target / "x.jsonl").write_text("secret")
    (tmp_path / "projects").symlink_to(target)
    root = Root(str(tmp_path / "projects"))
    assert root.names() == []
    for ask in (root.stat, root.entries, lambda: root.read(("x.jsonl",), 9)):
        with pytest.raises(Denied):
            ask()


def test_no_descriptor_is_left_of_one_that_is_refused(user):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(9):
        assert Root(str(user)).names() == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_link_that_is_turned_later_is_refused_then(user, tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    (store / "x.jsonl").write_text("said")
    link = tmp_path / "projects"
    link.symlink_to(store)
    root = Root(str(link))
    assert root.read(("x.jsonl",), 9) == b"said"
    (user / "x.jsonl").write_text("secret")
    link.unlink()
    link.symlink_to(user)
    with pytest.raises(Denied):
        root.read(("x.jsonl",), 9)
