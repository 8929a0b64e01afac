"""Command lines of programs that an interpreter of JavaScript runs. Pure."""

import os

_INTERPRETERS = ("node", "nodejs", "bun")
_VALUED = ("-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions")


def is_interpreter(path: str) -> bool:
    """Return whether argv[0] is node's or bun's."""
    return os.path.basename(path) in _INTERPRETERS


def script(arguments: tuple[str, ...]) -> int:
    """Return where the script stands among the interpreter's arguments; past the end where there is none."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        at += 2 if arguments[at] in _VALUED else 1
    return at
