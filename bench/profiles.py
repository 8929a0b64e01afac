"""Where the time goes: each hot path many times over, in this process, under cProfile."""

import cProfile
import io
import pstats
from collections.abc import Callable
from functools import partial
from typing import Any

from agents9core.resolver import Resolver
from agents9core.tree.top import build_tree
from bench import client9p, web
from bench.rows.index import index, reader_of
from bench.setting import Bench
from bench.world import chat, timed
from davserver.app import App
from davserver.http.environ import PEER_ADMITTED
from davserver.ninep.session import NinepSession
from davserver.ninep.stat import Owner

_CHAT = chat("codex", 7)
_LINES = 22


def show(bench: Bench) -> None:
    """Print the profiles of a cold index, of GET, of PROPFIND and of small 9P messages."""
    for harness, path in (("codex", bench.inputs.rollout), ("claude", bench.inputs.transcript)):
        _profile(f"cold index, {harness}", partial(index, path, reader_of(harness)))
    with bench.world() as world:
        world.codex(7, bench.inputs.rollout)
        root = build_tree(Resolver(str(world.proc)))
        app = App(root)
        names = b"".join(_ask(app, "GET", _CHAT)).decode().split()[: bench.size.looks]
        _profile(
            f"{len(names)} GET, without HTTP", lambda: [_ask(app, "GET", _CHAT + name) for name in names]
        )
        _profile("PROPFIND", lambda: _ask(app, "PROPFIND", _CHAT, web.PROPFIND, HTTP_DEPTH="1"))
        _profile("JSON listing", lambda: _ask(app, "GET", _CHAT, HTTP_ACCEPT="application/json"))
        for title, conversation in (("walk, getattr, clunk", client9p.look), ("open, read", client9p.fetch)):
            run = partial(_converse, NinepSession(root, Owner(0, 0, "u", "g")), conversation, names)
            _profile(f"9P {title} of {len(names)}, without sockets", run)


def _profile(title: str, run: Callable[[], object]) -> None:
    run()
    print(f"\n## {title}: {timed(run):.3f} s without the profiler\n")
    profile = cProfile.Profile()
    profile.runcall(run)
    out = io.StringIO()
    pstats.Stats(profile, stream=out).sort_stats("tottime").print_stats(_LINES)
    print("\n".join(line for line in out.getvalue().splitlines()[3:] if line.strip()))


def _ask(app: App, method: str, path: str, body: bytes = b"", **more: str) -> list[bytes]:
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method, "REQUEST_URI": path, "PATH_INFO": path, "QUERY_STRING": "",
        "HTTP_HOST": "127.0.0.1", "SERVER_NAME": "127.0.0.1", "SERVER_PORT": "80",
        "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(body), PEER_ADMITTED: True, **more,
    }  # fmt: skip
    return list(app(environ, lambda _status, _headers: None))


def _converse(session: NinepSession, conversation: Callable[..., list[bytes]], names: list[str]) -> None:
    version = client9p.frame(100, (1 << 17).to_bytes(4, "little") + client9p.string("9P2000.L"), 0xFFFF)
    attach = (0).to_bytes(4, "little") + b"\xff" * 4 + client9p.string("u") + client9p.string("") + b"\0" * 4
    session.receive_data(version + client9p.frame(104, attach) + client9p.walk(0, 1, _CHAT.strip("/")))
    for name in names:
        session.receive_data(b"".join(conversation(1, name, 1)))
        while session.next_reply():
            pass
