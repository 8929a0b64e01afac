"""Which processes are dsh with a session."""

from agents9core.harness import javascript
from agents9core.harness.programs import plain
from agents9core.routes.process import Process

_PACKAGE = "@deepseek-ai/dsh/lib/bin.js"


_COMMS = ("node", "nodejs", "MainThread", "dsh")
"""dsh gives itself no name; newer nodes call their first thread so."""


_NO_SESSION = frozenset(("--version", "-v", "-V", "--help", "-h"))


def matches(process: Process) -> bool:
    """Return whether a process is a dsh: node with the script `dsh`, or with the package's own."""
    argv = process.argv() if plain(process.comm) in _COMMS else None
    if not argv or not javascript.is_interpreter(argv[0]):
        return False
    script = javascript.script(argv[1:])
    path, words = "".join(argv[1:][script : script + 1]), argv[1:][script + 1 :]
    named = plain(path) == "dsh" or _PACKAGE in path
    return named and not (words and words[0] in _NO_SESSION)
