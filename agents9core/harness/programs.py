"""What programs are called, without what packagers and build tools add to a name. Pure."""

import re

_ADDED = "|".join((
    r"[-.](?:un)?wrap(?:p(?:e(?:d_*)?)?)?",  # nixpkgs' makeWrapper; comm has 15 bytes
    r"[-._](?:raw|real|bin|orig)",
    r"-(?:x86_64|x64|amd64|aarch64|arm64|armv7l?|i686|riscv64(?:gc)?)(?:-[a-z0-9_]*)*",  # a target triple
    r"-linux-(?:x64|arm64)(?:-[a-z0-9_]*)*",
    r"-v?[0-9]+(?:\.[0-9]+)+",
    r"\.exe",
))  # fmt: skip
_NAME = rf"\.*(.+?)(?:{_ADDED})*"
_SHELLS = r"(?:ba|da|z|fi|k|c|tc)?sh|busybox|sudo|su|doas|env|nohup|timeout|nice|setsid|script|tmux|screen"
_INTERPRETERS = r"(?:python|pypy|perl|ruby|lua|php)[0-9.]*"
_TRACERS = r"strace|ltrace|gdb|perf|watch|xargs|inotifywait|lsof|fuser"
_READERS = r"tail|head|cat|tac|less|more|bat|e?grep|rg|ugrep|bfs|find|sed|g?awk|jq"
_COPIERS = r"tee|dd|cp|mv|tar|rsync|gzip|zstd"
_EDITORS = r"n?vim?|view|ex|ed|emacs.*|nano|micro|hx|helix|kak|joe|code|codium|zed|subl"
_OTHERS = re.compile("|".join((_SHELLS, _INTERPRETERS, _TRACERS, _READERS, _COPIERS, _EDITORS)))


def plain(path: str) -> str:
    """Return the name of a program by its path or its comm: `.codex-wrapped` is `codex`."""
    name = path.removesuffix(" (deleted)").rpartition("/")[2]
    found = re.fullmatch(_NAME, name)
    return found[1] if found else name


def is_other(path: str) -> bool:
    """Return whether a program is one that runs, reads or edits what belongs to others: a shell, `tail`,
    vim."""
    return _OTHERS.fullmatch(plain(path)) is not None
