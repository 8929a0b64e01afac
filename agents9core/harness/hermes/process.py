"""Which processes are hermes with a session."""

import os
import re

from agents9core.harness.programs import plain
from agents9core.routes.process import Process, without_deleted

_PYTHON = "python[0-9.]*"


_SCRIPTS = ("hermes", "hermes-acp", "hermes-agent")


_NO_SESSION = frozenset((
    "auth", "backup", "bundles", "checkpoints", "claw", "completion", "config", "curator", "debug", "doctor",
    "dump", "fallback", "help", "hooks", "import", "insights", "kanban", "login", "logout", "logs", "lsp",
    "memory", "migrate", "model", "pairing", "pets", "plugins", "portal", "postinstall", "profile",
    "project", "prompt-size", "proxy", "secrets", "security", "send", "sessions", "setup", "skills",
    "status", "tools", "uninstall", "update", "version", "--version", "-V", "--help", "-h",
))  # fmt: skip
"""First words of a command line that start no agent."""


def matches(process: Process) -> bool:
    """Return whether a process is a hermes: comm `hermes` (it names itself so), or python with its script.

    Started by its script it has the script's name. Not the terminal interface in front of one (node), nor
    another program of that name.
    """
    comm = plain(process.comm)
    argv = process.argv() if comm in _SCRIPTS or comm.startswith("python") else None
    if not argv:
        return False
    named = comm == "hermes"
    words = argv[1:]
    if _is_python(argv[0]):
        script = next((at for at, word in enumerate(words) if not word.startswith("-")), len(words))
        named |= plain("".join(words[script : script + 1])) in _SCRIPTS
        words = words[script + 1 :]
    else:
        exe = process.exe()
        named &= plain(argv[0]) == "hermes" and (exe is None or _is_python(exe))
    return named and not (words and words[0] in _NO_SESSION)


def _is_python(path: str) -> bool:
    return re.fullmatch(_PYTHON, os.path.basename(without_deleted(path))) is not None
