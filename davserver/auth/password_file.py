"""The password file on disk: who may own it, how a server reads it, how `agents9 passwd` changes it."""

import contextlib
import logging
import os
import stat
import tempfile
import threading
from collections.abc import Callable, Mapping

from davserver.auth.passwords import Hash, check_name, check_password, parse_file
from davserver.config_error import ConfigError

logger = logging.getLogger("agents9")

MAX_FILE_BYTES = 1 << 20


class PasswordFile:
    """The names and hashes of a file, read again when it changes. Used from several threads."""

    def __init__(self, path: str) -> None:
        """Read *path*. Raises Unfit."""
        self._path = path
        self._lock = threading.Lock()
        self._seen = _witness(path)
        self._known: Mapping[bytes, Hash] = read(path)
        if not self._known:
            raise ConfigError(f"{path} has no entry; add one with: agents9 passwd {path} NAME")

    def known(self) -> Mapping[bytes, Hash]:
        """Return the hash of each name; of nobody while the file cannot be used."""
        with self._lock:
            seen = _witness(self._path)
            if seen != self._seen:
                self._seen = seen
                try:
                    self._known = read(self._path)
                except ConfigError as exc:
                    logger.warning("%s; until then no password is right", exc)
                    self._known = {}
            return self._known


def _witness(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def read(path: str) -> dict[bytes, Hash]:
    """Return what the file says. Raises Unfit, also where others could read or change it."""
    data = _content(path)
    try:
        return parse_file(data)
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{path} is not UTF-8; make it anew with: agents9 passwd {path} NAME") from exc
    except ValueError as exc:
        raise ConfigError(
            f"{path}: {exc}; take it out, or make it anew with: agents9 passwd {path} NAME"
        ) from exc


def _content(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as exc:
        raise ConfigError(f"there is no {path}; make it with: agents9 passwd {path} NAME") from exc
    except OSError as exc:
        raise ConfigError(f"cannot read {path}: {exc.strerror}") from exc
    try:
        _check(path, os.fstat(fd))
        with open(fd, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(fd)


def _check(path: str, found: os.stat_result) -> None:
    """Raise Unfit where others could read or change the file."""
    if not stat.S_ISREG(found.st_mode):
        raise ConfigError(f"{path} is not a file")
    if found.st_uid != os.geteuid():
        raise ConfigError(f"{path} belongs to another user (uid {found.st_uid}): chown {os.geteuid()} {path}")
    if stat.S_IMODE(found.st_mode) != 0o600:
        raise ConfigError(f"{path} has mode {stat.S_IMODE(found.st_mode):04o}, not 0600: chmod 600 {path}")
    if found.st_size > MAX_FILE_BYTES:
        raise ConfigError(f"{path} is too long to be a password file")


def set_password(path: str, name: str, ask: Callable[[], bytes]) -> None:
    """Add *name* to the file, or give it another password; a file that is not there is made.

    *ask* returns the password, once it is clear that the rest is in order. A reader sees the old file or the
    new one, whole. Raises ValueError for what cannot stand in it, Unfit, OSError.
    """
    check_name(name)
    path = os.path.realpath(path)
    lines = _lines(path)
    password = ask()
    check_password(password)
    kept = [line for line in lines if not line.startswith(f"{name}:")]
    entry = f"{name}:{Hash.of(password)}"
    _replace(path, "".join(f"{line}\n" for line in [*kept, entry]).encode(errors="surrogateescape"))


def _lines(path: str) -> list[str]:
    if not os.path.lexists(path):
        return []
    return [line for line in _content(path).decode(errors="surrogateescape").split("\n") if line]


def _replace(path: str, data: bytes) -> None:
    """Put a file of mode 0600 with *data* in the place of *path*, at once."""
    directory = os.path.dirname(path)
    fd, temporary = tempfile.mkstemp(prefix=".agents9-", dir=directory)
    try:
        with open(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(fd)
        os.rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
