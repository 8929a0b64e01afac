"""The command line.

main
  serve   Resolver → build_tree → `davserver.commands.serve`: both front ends until a signal comes
  ps      walks the same tree as any client and prints what its fact files say
  doctor  asks the Resolver for what each route of an agent's routes saw, and reads its transcript
  passwd  changes a password file, which `serve` reads for HTTP clients that it cannot know otherwise

What only one command needs it imports when it runs: `ps` is to answer at once.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from agents9core import __version__
from agents9core.errors import NotFound
from agents9core.harness.table import HARNESSES
from agents9core.resolver import Resolver
from agents9core.tree.top import build_tree
from davserver.address import HTTP_DEFAULT, NINEP_DEFAULT, parse_listener, parse_tcp
from davserver.config_error import ConfigError
from davserver.log import log_to_stderr

T = TypeVar("T")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status: 0, 1 where the system refuses, 2 for a bad command line."""
    options = _parser().parse_args(argv)
    log_to_stderr()
    run: Callable[[argparse.Namespace], int] = options.run
    return run(options)


def _write(text: str) -> int:
    """Write to the standard output; return the exit status, 1 where nobody reads it or there is no room."""
    try:
        print(text, flush=True)
    except OSError as exc:
        # What is left in the buffer is flushed at exit: let it go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(exc, BrokenPipeError):
            with suppress(OSError):
                print(f"agents9: cannot write: {exc.strerror}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="agents9", description="What your coding agents say, as files.")
    parser.add_argument("--version", action="version", version=f"agents9 {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    finding = argparse.ArgumentParser(add_help=False)
    finding.add_argument(
        "--root", metavar="NAME=PATH", action="append", default=[], type=_or_explain(_parse_root),
        help="where a harness keeps its files when its process does not say",
    )  # fmt: skip
    finding.add_argument(
        "--proc", metavar="DIR", default="/proc", type=_or_explain(_parse_directory),
        help="read the process table from DIR instead of /proc",
    )  # fmt: skip

    serve = commands.add_parser("serve", parents=[finding], help="serve the tree until stopped")
    serve.add_argument(
        "--http", metavar="HOST:PORT", action="append", type=_or_explain(_unless_none(parse_tcp)),
        help=f"where HTTP listens; may be repeated; none: nowhere (default {HTTP_DEFAULT})",
    )  # fmt: skip
    serve.add_argument(
        "--9p", metavar="HOST:PORT|unix:PATH", action="append", dest="ninep",
        type=_or_explain(_unless_none(parse_listener)),
        help=f"where 9P listens; may be repeated; none: nowhere (default {NINEP_DEFAULT} and "
        "unix:$XDG_RUNTIME_DIR/agents9.sock)",
    )  # fmt: skip
    serve.add_argument(
        "--allow-host", metavar="NAME", action="append", default=[],
        help="another name that HTTP clients may call this server by",
    )  # fmt: skip
    serve.add_argument(
        "--password-file", metavar="FILE",
        help="also serve HTTP clients of other users who know a password of FILE (see agents9 passwd)",
    )  # fmt: skip
    serve.add_argument(
        "--tls-cert",
        metavar="FILE",
        help="speak TLS over HTTP, with this certificate (PEM; its chain behind it)",
    )
    serve.add_argument("--tls-key", metavar="FILE", help="the key of --tls-cert (PEM)")
    serve.add_argument("--trace-9p", action="store_true", help="log every 9P message, both ways")
    serve.set_defaults(run=_serve)

    ps = commands.add_parser("ps", parents=[finding], help="list the agents that run")
    ps.add_argument("--json", action="store_true", help="print a JSON array")
    ps.set_defaults(run=_ps)

    doctor = commands.add_parser("doctor", parents=[finding], help="say how each agent's session was found")
    doctor.add_argument(
        "pid", metavar="PID", nargs="?", type=_or_explain(_parse_pid), help="only this process"
    )
    doctor.add_argument("--json", action="store_true", help="print a JSON array")
    doctor.set_defaults(run=_doctor)

    passwd = commands.add_parser("passwd", help="set a password for --password-file")
    passwd.add_argument("file", metavar="FILE", help="the password file; it is made if it is not there")
    passwd.add_argument("name", metavar="NAME", help="whose password")
    passwd.set_defaults(run=_passwd)
    return parser


def _or_explain(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Let argparse show the text of a ValueError, which says what to write."""

    def explained(text: str) -> T:
        try:
            return parse(text)
        except ValueError as exc:
            raise argparse.ArgumentTypeError(str(exc)) from exc

    return explained


def _unless_none(parse: Callable[[str], T]) -> Callable[[str], T | None]:
    return lambda text: None if text == "none" else parse(text)


def _parse_root(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not equals or not path or name not in HARNESSES:
        raise ValueError(f"{text!r} is not NAME=PATH; NAME is one of {', '.join(HARNESSES)}")
    return name, str(Path(path).expanduser().absolute())


def _parse_pid(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ValueError(f"{text!r} is not a process id")
    return int(text)


def _parse_directory(text: str) -> str:
    if not Path(text).is_dir():
        raise ValueError(f"{text} is not a directory")
    return text


def _resolver(options: argparse.Namespace) -> Resolver:
    return Resolver(options.proc, dict(options.root))


def _serve(options: argparse.Namespace) -> int:
    from davserver.commands.serve import serve

    return serve(options, build_tree(_resolver(options)), _write)


def _ps(options: argparse.Namespace) -> int:
    from davserver.commands.ps import agents_of, as_json, as_table

    agents = agents_of(build_tree(_resolver(options)))
    if options.json:
        return _write(as_json(agents))
    if agents:
        return _write(as_table(agents))
    print("agents9: no agent runs", file=sys.stderr)
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from davserver.commands.doctor import Doctor, as_json, as_text

    doctor = Doctor(_resolver(options))
    try:
        found = doctor.agents() if options.pid is None else [doctor.process(options.pid)]
    except NotFound as exc:
        print(f"agents9: {exc}", file=sys.stderr)
        return 1
    if options.json:
        return _write(as_json(found))
    if found:
        return _write(as_text(found))
    print("agents9: no agent runs", file=sys.stderr)
    return 0


def _passwd(options: argparse.Namespace) -> int:
    from davserver.auth.password_file import set_password

    try:
        set_password(options.file, options.name, _new_password)
    except (ConfigError, ValueError) as exc:
        print(f"agents9: {exc}", file=sys.stderr)
        return 2
    except OSError as exc:
        print(f"agents9: cannot write {options.file}: {exc.strerror}", file=sys.stderr)
        return 1
    return 0


def _new_password() -> bytes:
    """Ask for a password: twice at a terminal, else it is a line of the input. Raises ValueError."""
    import getpass

    if not sys.stdin.isatty():
        return sys.stdin.buffer.readline().rstrip(b"\r\n")
    password = getpass.getpass("Password: ")
    if getpass.getpass("Again: ") != password:
        raise ValueError("the two are not the same; nothing was changed")
    return password.encode(errors="surrogateescape")


if __name__ == "__main__":
    sys.exit(main())
