"""The password file: who may have made it, how it changes under a server, and `agents9 passwd`."""

import io
import os
import sys

import pytest

from davserver.__main__ import main
from davserver.auth.password_file import MAX_FILE_BYTES, ConfigError, PasswordFile, read
from davserver.auth.passwords import Cost, Hash

CHEAP = Cost(2, 1, 1)


def entry(name="alice", password=b"x"):
    return f"{name}:{Hash.of(password, CHEAP)}\n"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "passwords"


def make(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)


@pytest.fixture
def passwd(path, monkeypatch):
    """Run `agents9 passwd` with *typed* as its input, or at a terminal with *answers*."""

    def run(name="alice", typed="secret\n", answers=None, file=path):
        stdin = io.TextIOWrapper(io.BytesIO(typed.encode()))
        monkeypatch.setattr(stdin, "isatty", lambda: answers is not None)
        monkeypatch.setattr(sys, "stdin", stdin)
        left = list(answers or ())
        monkeypatch.setattr("getpass.getpass", lambda prompt: left.pop(0))
        status = main(["passwd", str(file), name])
        assert left == []
        return status

    return run


def test_a_file_of_the_user_alone_is_read(path):
    make(path, entry())
    assert read(str(path))[b"alice"].matches(b"x")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o602, 0o660, 0o400, 0o700, 0o4600])
def test_another_mode_is_refused_and_what_to_do_is_said(path, mode):
    make(path, entry(), mode)
    with pytest.raises(ConfigError, match=f"mode {mode:04o}, not 0600: chmod 600 {path}"):
        read(str(path))


def test_a_file_of_another_user_is_refused(path, monkeypatch):
    make(path, entry())
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(
        ConfigError, match=f"belongs to another user.*: chown {path.stat().st_uid + 1} {path}"
    ):
        read(str(path))


def test_what_is_no_file_is_refused_and_holds_up_nothing(path):
    os.mkfifo(path, 0o600)
    with pytest.raises(ConfigError, match="is not a file"):
        read(str(path))
    with pytest.raises(ConfigError, match="is not a file"):
        read(str(path.parent))
    with pytest.raises(ConfigError, match="agents9 passwd"):
        read(str(path.parent / "nothing"))
    with pytest.raises(ConfigError, match="cannot read"):
        read(str(path / "below"))


def test_a_broken_file_is_refused(path):
    make(path, "x" * (MAX_FILE_BYTES + 1))
    with pytest.raises(ConfigError, match="too long"):
        read(str(path))
    make(path, entry() + "bob:secret\n")
    with pytest.raises(ConfigError, match=r"line 2 is not name:scrypt.*agents9 passwd"):
        read(str(path))
    path.write_bytes(b"\xff\n")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read(str(path))


@pytest.mark.parametrize("text", ["", "# nobody\n\n"])
def test_a_file_without_names_is_refused(path, text):
    make(path, text)
    with pytest.raises(ConfigError, match=f"agents9 passwd {path} NAME"):
        PasswordFile(str(path))


def test_a_server_sees_what_changes(path):
    make(path, entry())
    file = PasswordFile(str(path))
    same = file.known()
    assert file.known() is same
    make(path, entry() + entry("bob"))
    assert set(file.known()) == {b"alice", b"bob"}


def test_while_the_file_cannot_be_used_nobody_is_known(path, caplog):
    make(path, entry())
    file = PasswordFile(str(path))
    path.chmod(0o644)
    assert [file.known(), file.known()] == [{}, {}]
    assert [record.getMessage() for record in caplog.records] == [
        f"{path} has mode 0644, not 0600: chmod 600 {path}; until then no password is right"
    ]
    caplog.clear()
    path.chmod(0o600)
    assert set(file.known()) == {b"alice"}
    path.unlink()
    assert file.known() == {}
    caplog.clear()


def test_passwd_makes_a_file_for_the_user_alone(passwd, path):
    mask = os.umask(0)
    try:
        assert passwd() == 0
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o7777 == 0o600
    assert read(str(path))[b"alice"].matches(b"secret")
    assert "secret" not in path.read_text()


def test_passwd_adds_and_replaces_and_leaves_the_rest(passwd, path):
    kept = "# mine\n" + entry("alicia") + entry("bob", b"b")
    make(path, kept + entry())
    assert passwd(typed="new\n") == 0
    assert path.read_text().startswith(kept)
    known = read(str(path))
    assert known[b"alice"].matches(b"new")
    assert len(known) == 3


def test_passwd_mends_a_line_that_cannot_be_read(passwd, path):
    make(path, "alice:secret\n")
    assert passwd() == 0
    assert read(str(path))[b"alice"].matches(b"secret")


def test_passwd_takes_a_line_as_it_is(passwd, path):
    assert passwd(typed=' pa "ss\\w#rd:ü \r\nmore\n') == 0
    assert read(str(path))[b"alice"].matches(' pa "ss\\w#rd:ü '.encode())


def test_passwd_asks_twice_at_a_terminal(passwd, path, capsys):
    assert passwd(answers=["secret", "secret"]) == 0
    assert read(str(path))[b"alice"].matches(b"secret")
    before = path.read_bytes()
    assert passwd(answers=["secret", "secrets"]) == 2
    assert path.read_bytes() == before
    assert "nothing was changed" in capsys.readouterr().err


@pytest.mark.parametrize(
    "given", [{"name": "a:b"}, {"name": ""}, {"typed": ""}, {"typed": "\n"}, {"typed": "a\0\n"}]
)
def test_passwd_refuses_what_no_header_can_say(passwd, path, given, capsys):
    assert passwd(**given) == 2
    assert not path.exists()
    assert capsys.readouterr().err.startswith("agents9: a ")


def test_passwd_refuses_before_it_asks(passwd, path, capsys):
    make(path, entry(), 0o644)
    assert passwd(answers=[]) == 2
    assert passwd(name="a:b", answers=[]) == 2
    assert f"chmod 600 {path}" in capsys.readouterr().err


def test_passwd_says_why_it_cannot_write(passwd, path, capsys):
    assert passwd(file=path / "nowhere" / "file") == 1
    assert capsys.readouterr().err.endswith("No such file or directory\n")


def test_passwd_changes_the_file_at_once_or_not_at_all(passwd, path, monkeypatch, capsys):
    make(path, entry())
    before = path.read_bytes()

    def full(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert passwd() == 1
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]
    assert "No space left" in capsys.readouterr().err


def test_passwd_follows_a_link_to_the_file(passwd, path):
    real = path.with_name("real")
    path.symlink_to(real)
    assert passwd() == 0
    assert path.is_symlink()
    assert read(str(real))[b"alice"].matches(b"secret")


def test_serve_does_not_start_on_a_file_that_others_read(path, capsys):
    make(path, entry(), 0o640)
    assert main(["serve", "--http", "127.0.0.1:0", "--9p", "none", "--password-file", str(path)]) == 2
    assert capsys.readouterr().err == f"agents9: {path} has mode 0640, not 0600: chmod 600 {path}\n"
