"""Which processes are omp with a session, and what their command lines ask for."""

from agents9core.harness.omp.finder import _arguments, _profile
from agents9core.harness.pi_files.store import homes_of
from agents9core.harness.programs import plain
from agents9core.routes.process import Process

_HELPER = "__omp_"


_RELAY = "browser-relay"


_NO_SESSION = frozenset((
    "auth-broker", "auth-gateway", "agents", "bench", "completions", "__complete", "compress", "config",
    "dry-balance", "gc", "grep", "gallery", "git", "grievances", "images", "if-bench", "install", "models",
    "plugin", "ps", "say", "share", "setup", "shell", "read", "render", "ssh", "stats", "update", "usage",
    "tiny-models", "token", "ttsr", "worktree", "search", "--version", "-v", "--help", "-h",
))  # fmt: skip
"""First words of a command line that start no agent."""


def matches(process: Process) -> bool:
    """Return whether a process is an omp with a session: no worker of one, no relay, no tool."""
    argv = process.argv() if plain(process.comm) == "omp" else None
    if not argv:
        return False
    arguments = _arguments(argv)
    return not (
        any(argument.startswith(_HELPER) or argument == _RELAY for argument in arguments)
        or (arguments and arguments[0] in _NO_SESSION)
    )


def homes(process: Process, home: str) -> tuple[str, ...]:
    """Return the directories that a process keeps its files in."""
    profile = _profile(_arguments(process.argv() or ()))
    return homes_of(process.environ() or {}, profile, home, process.cwd())
