"""Directories that are no store of transcripts, whoever names them as one.

A home may come from the environment of a process, and a store in it may be a link to anywhere. What counts is
where it really is, by the kernel's word for the open directory: see `Root`.
"""

import os
import pwd
from contextlib import suppress
from functools import lru_cache

SECRET_DIRECTORIES = frozenset({
    ".aws", ".azure", ".docker", ".gnupg", ".kube", ".mozilla", ".password-store", ".ssh", ".thunderbird",
    "gcloud", "keyrings",
})  # fmt: skip
"""What is in them is shown nowhere."""
_OF_EVERY_PROGRAM = (".cache", ".config", ".local", ".local/share", ".local/state")
"""Directories of a home in which every program has its own."""


def may_be_store(real: str) -> bool:
    """Whether a directory, by its path without links, may hold transcripts.

    The user's home may not, nor what it lies in, nor a directory of secrets.
    """
    return real not in _closed(os.environ.get("HOME")) and SECRET_DIRECTORIES.isdisjoint(real.split("/"))


def may_be_home(path: str) -> bool:
    """Whether a directory that a process names as its harness's home may be one."""
    return may_be_store(os.path.realpath(path))


@lru_cache(maxsize=4)
def _closed(home: str | None) -> frozenset[str]:
    """Return the homes of this user, what each lies in, and what every program uses of it."""
    homes = {home} if home else set()
    with suppress(KeyError):
        homes.add(pwd.getpwuid(os.getuid()).pw_dir)
    found: set[str] = set()
    for real in map(os.path.realpath, filter(os.path.isabs, homes)):
        found.update(f"{real.rstrip('/')}/{name}" for name in _OF_EVERY_PROGRAM)
        while real not in found:
            found.add(real)
            real = os.path.dirname(real)
    return frozenset(found)
