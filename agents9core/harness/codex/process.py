"""codex's command lines: which processes are one, and what each asks for. Seen to 0.171.0."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from agents9core.harness.programs import is_other, plain
from agents9core.routes.process import Process

_VALUED = frozenset((
    "-c", "--config", "-m", "--model", "-p", "--profile", "-C", "--cd", "-s", "--sandbox", "-a",
    "--ask-for-approval", "-i", "--image", "--enable", "--disable", "--add-dir", "--local-provider",
    "--remote", "--remote-auth-token-env", "--listen",
))  # fmt: skip
"""Options that take the next argument as their value."""
_TUI = ("", "resume", "fork")
"""Subcommands that open the terminal interface."""
_SESSION = frozenset((*_TUI, "exec", "e", "review", "app-server"))
_NO_SESSION = frozenset((
    "agents", "login", "logout", "mcp", "mcp-server", "plugin", "remote-control", "completion",
    "update", "doctor", "sandbox", "debug", "apply", "a", "queue", "archive", "delete",
    "migrate-rollouts", "migrate-nfs-db", "unarchive", "cloud", "cloud-tasks", "exec-server",
    "execpolicy", "features", "help", "responses-api-proxy", "stdio-to-uds",
))  # fmt: skip
_NO_SESSION_OPTIONS = frozenset(("-h", "--help", "-V", "--version"))
_APP_SERVER_TOOLS = frozenset(("proxy", "daemon", "generate-ts", "generate-json-schema"))
_RUN_AS = "--codex-run-as-"
"""codex running itself as a tool of an agent."""
_TOOL = re.compile("apply_?patch|codex-.+|node|nodejs|bun")
"""What else the program, or its wrapper, is called by argv[0]."""
_WORD = re.compile("[a-z][a-z0-9-]*")
"""How a subcommand is spelt."""


class CodexCommand(NamedTuple):
    """What a command line asks for."""

    command: str
    """The subcommand; "" where there is none, only a prompt perhaps."""
    words: tuple[str, ...]
    """What follows the subcommand and is no option."""
    options: Mapping[str, str]
    settings: Mapping[str, str]
    """What it sets of its configuration, as it is written; a feature that is switched is a setting too."""
    doubtful: bool = False
    """Whether what looks like a prompt of one word may be a subcommand that is not known."""


def parse_argv(argv: tuple[str, ...]) -> CodexCommand:
    """Read a codex command line; options may stand before the subcommand. Pure."""
    words: list[str] = []
    options: dict[str, str] = {}
    settings: dict[str, str] = {}
    arguments = iter(argv[1:])
    for argument in arguments:
        if argument == "--":
            words = [*(words or [""]), *arguments]
        elif argument.startswith("-"):
            if argument.startswith("-c") and argument != "-c":
                argument = f"--config={argument[2:].removeprefix('=')}"
            name, equals, value = argument.partition("=")
            options[name] = next(arguments, "") if name in _VALUED and not equals else value
            settings |= _setting(name, options[name])
        else:
            words.append(argument)
    known = words and (words[0] in _SESSION or words[0] in _NO_SESSION)
    command, *rest = words if known else [""]
    doubtful = not known and len(words) > 0 and words[0] == argv[1] and _WORD.fullmatch(argv[1]) is not None
    return CodexCommand(command, tuple(rest), options, settings, doubtful)


def _setting(option: str, value: str) -> dict[str, str]:
    """Return what an option sets, by its key; nothing where it is no option that does. Pure."""
    if option in ("-c", "--config"):
        key, _, value = value.partition("=")
        return {key.strip(): value.strip()}
    if option in ("--enable", "--disable"):
        return {f"features.{value}": "true" if option == "--enable" else "false"}
    return {}


def matches(process: Process) -> bool:
    """Return whether a process is a codex that has threads, the shared daemon included.

    Named by comm, argv[0] or its executable; not the node wrapper, nor the same binary under the name of a
    tool (`apply_patch`).
    """
    argv = process.argv()
    if not argv:
        return False
    return _is_codex(process, argv[0]) and _has_threads(parse_argv(argv))


def _is_codex(process: Process, name: str) -> bool:
    if plain(name) == "codex":
        return plain(process.comm) == "codex" or not is_other(process.exe() or process.comm)
    if _TOOL.fullmatch(plain(name)) or is_other(name):
        return False
    return "codex" in (plain(process.comm), plain(process.exe() or "")) and not is_other(process.exe() or "")


def _has_threads(asked: CodexCommand) -> bool:
    return not (
        asked.command in _NO_SESSION
        or (asked.command == "app-server" and asked.words[:1] and asked.words[0] in _APP_SERVER_TOOLS)
        or not _NO_SESSION_OPTIONS.isdisjoint(asked.options)
        or any(option.startswith(_RUN_AS) for option in asked.options)
    )


def is_daemon(asked: CodexCommand) -> bool:
    """Return whether it is the server that a home's terminal interfaces share (0.171)."""
    return asked.command == "app-server" and "--managed-daemon" in asked.options


def uses_daemon(asked: CodexCommand) -> bool:
    """Return whether it is a terminal interface whose thread may live in that server."""
    switched_off = asked.settings.get("features.daemon_auto_start") == "false"
    return asked.command in _TUI and "--no-daemon" not in asked.options and not switched_off
