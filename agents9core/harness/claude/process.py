"""Which processes are Claude Code with a session.

By comm, argv and the path of the program. Pure but for `/proc`.
"""

import os

from agents9core.harness import javascript
from agents9core.harness.claude.argv import parse_argv
from agents9core.harness.programs import is_other, plain
from agents9core.routes.process import Process

_PACKAGE = "@anthropic-ai/claude-code/"


_INSTALLED = ("/claude/versions/", "/ccd-cli/")


def matches(process: Process) -> bool:
    """Return whether a process is a Claude Code that holds a conversation, or may be given one.

    Named by comm, argv[0] or its executable: `claude`, the version that is installed (2.1.332), or node.
    """
    argv = process.argv()
    exe = process.exe() or ""
    if not argv or is_other(argv[0]) or is_other(exe):
        return False
    names = (process.comm, argv[0], exe)
    named = any(plain(name) == "claude" or _is_installed(name) for name in names)
    return (named or _is_package_s(process, argv)) and parse_argv(arguments_of(argv)).holds != "no"


def arguments_of(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arguments of claude: without the program, or the interpreter and its script."""
    rest = argv[1:]
    return rest[javascript.script(rest) + 1 :] if argv and javascript.is_interpreter(argv[0]) else rest


def _is_package_s(process: Process, argv: tuple[str, ...]) -> bool:
    """Return whether node runs the package's script, by its own path or by that which a link leads to."""
    if not javascript.is_interpreter(argv[0]):
        return False
    script = "".join(argv[1:][javascript.script(argv[1:]) :][:1])
    if _PACKAGE in script or plain(script) != "claude":
        return _PACKAGE in script
    return _PACKAGE in os.path.realpath(os.path.join(process.cwd() or "/", script))


def _is_installed(path: str) -> bool:
    return any(place in f"/{path}" for place in _INSTALLED)
