"""`agents9 serve`: both front ends of a tree, and the only module that knows them.

serve   App → HttpServer, and → 9P Server; waits for a signal; stops both
"""

import argparse
import gc
import grp
import logging
import os
import pwd
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from agents9core.node import Directory
from davserver.address import HTTP_DEFAULT, NINEP_DEFAULT, Tcp, Unix, not_private, parse_tcp
from davserver.app import App
from davserver.auth.peer_credentials import Peers
from davserver.commands.ps import anybody
from davserver.config_error import ConfigError
from davserver.ninep.server import NinepServer
from davserver.ninep.stat import Owner
from davserver.server.http_server import HttpServer
from davserver.server.inherited import take_inherited_sockets

if TYPE_CHECKING:
    from davserver.auth.passwords import Passwords
    from davserver.server.tls import TlsAdapter

DESCRIPTORS = 65536
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
A = TypeVar("A", Tcp, Tcp | Unix)


def serve(options: argparse.Namespace, root: Directory, extract: Callable[[str], object]) -> int:
    """Serve a tree until a signal comes, and *extract* where. Return the exit status, as `main` does."""
    wanted = _wanted(options.http, [parse_tcp(HTTP_DEFAULT)])
    wanted_9p = _wanted(options.ninep, _ninep_defaults())
    try:
        passwords = _passwords(options.password_file)
        tls = _tls(options)
        _check_reach(wanted, is_safe=passwords is not None and tls is not None)
    except ConfigError as exc:
        print(f"agents9: {exc}", file=sys.stderr)
        return 2
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    _allow_descriptors()
    logging.getLogger("davserver.ninep.trace").setLevel(logging.DEBUG if options.trace_9p else logging.INFO)
    if not wanted and not wanted_9p:
        print(
            "agents9: --http none and --9p none: nothing to serve; give one of them an address",
            file=sys.stderr,
        )
        return 2
    peers = Peers()
    ninep = NinepServer(root, _owner(), peers.admits)
    try:
        app = App(root, options.allow_host, passwords)
        http = HttpServer(
            app, wanted, peers, passwords is not None, tls, options.allow_host, take_inherited_sockets()
        )
        listeners = [_listen(ninep, address) for address in wanted_9p]
    except OSError as exc:
        print(f"agents9: cannot listen on {exc.filename}: {exc.strerror}", file=sys.stderr)
        return 1
    gc.freeze()  # what a start made stays: to look through it for garbage stops everybody for some 20 ms
    http.start()
    ninep.start()
    try:
        extract(_where(http, listeners, root))
        signal.sigwait(_SIGNALS)
    finally:
        ninep.stop()
        http.stop()
    return 0


def _passwords(path: str | None) -> "Passwords | None":
    """Return the passwords of a file. Raises Unfit."""
    if path is None:
        return None
    from davserver.auth.password_file import PasswordFile
    from davserver.auth.passwords import Passwords

    return Passwords(PasswordFile(path).known)


def _tls(options: argparse.Namespace) -> "TlsAdapter | None":
    """Return the TLS context of the HTTP front end. Raises Unfit."""
    if options.tls_cert is None and options.tls_key is None:
        return None
    if options.tls_cert is None or options.tls_key is None:
        raise ConfigError("--tls-cert and --tls-key go together")
    from davserver.server.tls import TlsAdapter

    return TlsAdapter(options.tls_cert, options.tls_key)


def _check_reach(wanted: list[Tcp], *, is_safe: bool) -> None:
    """Raise Unfit for an address of HTTP that other machines reach, unless *is_safe*."""
    for address in wanted:
        if not (is_safe or address.is_loopback):
            raise ConfigError(not_private(address, "give --password-file, --tls-cert and --tls-key too, or "))


def _allow_descriptors() -> None:
    """Take as many descriptors as the system lets us: the usual 1024 are few for clients that wait."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _where(http: HttpServer, listeners: list[Tcp | Unix], root: Directory) -> str:
    """Return the addresses in use, and where to begin if nobody is there to be listened to."""
    lines = [f"{http.scheme}://{Tcp(*address)}/" for address in http.addresses]
    lines += [f"9p {address}" for address in listeners]
    if not anybody(root):
        lines.append("no agent runs now; start one, or stop this and see a made one talk: make demo")
    return "\n".join(lines)


def _listen(server: NinepServer, address: Tcp | Unix) -> Tcp | Unix:
    """Let the 9P front end listen, and return the address in use. Raises OSError, the address its
    filename."""
    try:
        if isinstance(address, Tcp):
            return Tcp(*server.listen_tcp(*address))
        server.listen_unix(address.path)
    except OSError as exc:
        reason = (exc.strerror or str(exc)).partition(" (while")[0]  # create_server names the address too
        raise OSError(exc.errno, reason, str(address)) from exc
    return address


def _wanted(given: list[A | None] | None, defaults: list[A]) -> list[A]:
    """Return the addresses to listen on; `none` among those given is no address."""
    return defaults if given is None else [address for address in given if address is not None]


def _owner() -> Owner:
    """Return the user that the server runs as; a number without a name is its own name."""
    uid, gid = os.getuid(), os.getgid()
    with suppress(KeyError):
        return Owner(uid, gid, pwd.getpwuid(uid).pw_name, grp.getgrgid(gid).gr_name)
    return Owner(uid, gid, str(uid), str(gid))


def _ninep_defaults() -> list[Tcp | Unix]:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return [parse_tcp(NINEP_DEFAULT), *([Unix(Path(runtime) / "agents9.sock")] if runtime else [])]
