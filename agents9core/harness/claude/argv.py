"""Claude Code's command lines: which of its processes hold a conversation. Seen to 2.1.332.

What is decided here is only what the words state. A spare begins as a helper and is given a session later,
and a subcommand that is not known looks like a prompt of one word: such a process is one if it has a record.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

_NO_SESSION = frozenset((
    "agents", "attach", "auth", "auto-mode", "completion", "config", "daemon", "doctor", "help", "install",
    "kill", "login", "logout", "logs", "mcp", "migrate-installer", "plugin", "plugins", "project",
    "remote-control", "respawn", "rm", "server", "setup-token", "ssh", "stop", "uninstall", "update",
    "upgrade", "ultrareview",
))  # fmt: skip
"""Subcommands."""
_HELPERS = re.compile(
    r"bg-.+|--(?:bg|daemon)-.+|--.+-(?:mcp|host|worker)|--ripgrep|--preload|--bg|--background"
    r"|--version|-v|--help|-h"
)
"""Words and options of processes that the program starts for itself, and of those that end at once."""
_SPARE = ("bg-spare", "--bg-spare")
_COMMAND = re.compile("[a-z][a-z0-9-]*")
"""How a subcommand is spelt."""
_SWITCHES = frozenset((
    "--allow-dangerously-skip-permissions", "--bare", "--brief", "--chrome", "--continue", "-c",
    "--dangerously-skip-permissions", "--disable-slash-commands", "--fork-session", "--ide",
    "--include-hook-events", "--include-partial-messages", "--init", "--init-only", "--maintenance",
    "--mcp-debug", "--no-chrome", "--no-session-persistence", "--replay-user-messages",
    "--strict-mcp-config", "--verbose", "--debug", "-d", "--tmux",
))  # fmt: skip
"""Options without a value; `--debug` may have one, which no subcommand is."""
_MANY = frozenset((
    "--add-dir", "--allowedTools", "--allowed-tools", "--betas", "--disallowedTools", "--disallowed-tools",
    "--file", "--mcp-config", "--tools",
))  # fmt: skip
"""Options that take all words up to the next option."""
_VALUED = frozenset((
    "--agent", "--agents", "--append-system-prompt", "--append-system-prompt-file", "--debug-file",
    "--effort", "--fallback-model", "--input-format", "--json-schema", "--max-budget-usd",
    "--max-thinking-tokens", "--max-turns", "--model", "--name", "-n", "--output-format", "--permission-mode",
    "--permission-prompt-tool", "--plugin-dir", "--resume", "-r", "--sdk-url", "--session-id", "--settings",
    "--setting-sources", "--system-prompt", "--system-prompt-file", "--worktree", "-w",
))  # fmt: skip
_RESUME = ("--resume", "-r")
_PRINT = ("-p", "--print")


class ClaudeCommand(NamedTuple):
    """What a command line asks for."""

    holds: Literal["yes", "no", "by its record"]
    """Whether the process holds a conversation."""
    resumes: str | None = None
    """The session that it was asked to resume."""


def parse_argv(arguments: Sequence[str]) -> ClaudeCommand:
    """Read what follows the program's name. Pure."""
    at = 0
    while at < len(arguments):
        word, equals, _ = arguments[at].partition("=")
        if word == "--" or word in _PRINT:
            break
        if word in _SPARE:
            return ClaudeCommand("by its record")
        if _HELPERS.fullmatch(word) or word in _NO_SESSION:
            return ClaudeCommand("no")
        if not word.startswith("-"):
            doubtful = _COMMAND.fullmatch(arguments[at]) and not set(_PRINT) & set(arguments[at:])
            return ClaudeCommand("by its record" if doubtful else "yes", _resumed(arguments))
        at += 1 if equals else 1 + _values(word, arguments[at + 1 :])
    return ClaudeCommand("yes", _resumed(arguments))


def _values(option: str, following: Sequence[str]) -> int:
    """Return how many of the words after an option are its values.

    Of an option that is not known the next word counts as one, unless it is a subcommand.
    """
    words = next((at for at, word in enumerate(following) if word.startswith("-")), len(following))
    if option in _MANY:
        return words
    if option in _SWITCHES or not words:
        return 0
    return 1 if option in _VALUED or following[0] not in _NO_SESSION else 0


def _resumed(arguments: Sequence[str]) -> str | None:
    """Return what `--resume` names; None where a new session is made of it."""
    if "--fork-session" in arguments:
        return None
    for at, argument in enumerate(arguments):
        option, equals, value = argument.partition("=")
        if option == "--":
            return None
        if option in _RESUME:
            return value if equals else "".join(arguments[at + 1 : at + 2]) or None
    return None
