"""The HTTP front end itself: what WsgiDAV adds to a request, and GETs beside slow and waiting clients."""

import contextlib
import resource
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from agents9core.memory import MemoryChat, MemoryDirectory
from bench import peers, web
from bench.inputs import codex_said
from bench.setting import Bench
from bench.table import at_most, at_most_more, at_most_times
from bench.world import chat, memory_mib, served
from davserver.app import App
from davserver.handlers.requests import Handlers
from davserver.http.environ import PEER, PEER_ADMITTED, WAKE

TITLE = "Front end"
NEEDS = ()
_EACH = 256
_PID = 7
_CHAT = chat("codex", _PID)
_GETS = 100
_HALVES = (b"GET ", b"PROPFIND / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nab")
_WAIT_SECONDS = 20


def measure(bench: Bench) -> None:
    _in_process(bench)
    _beside_its_own_handlers(bench)
    _slow_clients(bench)
    _waiters(bench)


def _in_process(bench: Bench) -> None:
    said = MemoryChat()
    said.say("user", b"x" * 2000)
    root = MemoryDirectory("", [said])
    app, get = App(root), Handlers(root).by_method["GET"]

    def through_wsgidav() -> None:
        for _ in app(_environ(), lambda *_: None):
            pass

    def alone() -> None:
        list(get(_environ()).body)

    taken = [(_microseconds(through_wsgidav), _microseconds(alone)) for _ in range(max(3, bench.runs))]
    ours, theirs = map(list, zip(*taken, strict=True))
    name = "the application in process: a GET of a message"
    bench.row(name, "µs", ours, theirs, "our handlers without WsgiDAV", at_most_more(25))


def _environ() -> dict[str, object]:
    path = "/chat/00000000-user"
    return {
        "REQUEST_METHOD": "GET", "REQUEST_URI": path, "PATH_INFO": path, "SERVER_PROTOCOL": "HTTP/1.1",
        "SERVER_NAME": "127.0.0.1", "HTTP_HOST": "127.0.0.1", PEER_ADMITTED: True, PEER: "",
        WAKE: lambda: None,
    }  # fmt: skip


def _microseconds(run: Callable[[], None], times: int = 3000) -> float:
    began = time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - began) / times * 1e6


def _beside_its_own_handlers(bench: Bench) -> None:
    """By a smaller chat than the other listings': WsgiDAV's handlers take seconds for thousands."""
    with bench.world() as world:
        world.codex(_PID, bench.inputs.rollout)
        with served(world) as server, peers.wsgidav("agents", world.proc) as port:
            web.get(server.http, _CHAT)
            ours = [web.propfind(server.http, _CHAT).seconds for _ in range(bench.runs)]
            theirs = [web.propfind(port, _CHAT).seconds]
    name = f"PROPFIND of {bench.size.messages:,}"
    label = "stock WsgiDAV, the same provider"
    bench.row(name, "s", ours, theirs * len(ours), label, at_most_times(0.05))


def _slow_clients(bench: Bench) -> None:
    _allow_descriptors()
    with bench.world() as world:
        world.claude(8, bench.inputs.transcript)
        world.codex(_PID, bench.inputs.small_rollout)
        with served(world) as server, contextlib.ExitStack() as stack:
            web.get(server.http, _CHAT)
            idle = memory_mib(server.pid)
            _crowd(server.http, stack)
            took = sorted(_get_ms(server.http) for _ in range(_GETS))
            bench.row(f"GET beside {_EACH} slow clients of each kind: median", "ms",
                      [statistics.median(took)], target=at_most(20))  # fmt: skip
            bench.row(f"GET beside {_EACH} slow clients of each kind: p99", "ms", [took[-2]],
                      target=at_most(100))  # fmt: skip
            threads = len(list(Path(f"/proc/{server.pid}/task").iterdir()))
            bench.row("threads of the server meanwhile", "", [float(threads)], target=at_most(64))
            bench.row("its memory over idle meanwhile", "MiB", [memory_mib(server.pid) - idle])


def _crowd(port: int, stack: contextlib.ExitStack) -> None:
    """Let clients send half a request, stall in a long response, and dribble."""
    dribbling = []
    for number in range(_EACH):
        half = stack.enter_context(_connected(port))
        half.sendall(_HALVES[number % len(_HALVES)])
        stalled = stack.enter_context(_connected(port))
        stalled.sendall(b"GET /active/claude/8/transcript HTTP/1.1\r\nHost: localhost\r\n\r\n")
        dribbling.append(stack.enter_context(_connected(port)))
        dribbling[-1].sendall(b"GET /version HTTP/1.1\r\nHost: localhost\r\n")
    stop = threading.Event()

    def dribble() -> None:
        while not stop.wait(0.5):
            for sock in dribbling:
                with contextlib.suppress(OSError):
                    sock.sendall(b"x")

    thread = threading.Thread(target=dribble)
    thread.start()
    stack.callback(thread.join)
    stack.callback(stop.set)


def _get_ms(port: int) -> float:
    return web.get(port, "/version").seconds * 1e3


@contextlib.contextmanager
def _connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), _WAIT_SECONDS) as sock:
        yield sock


def _waiters(bench: Bench) -> None:
    with bench.world() as world:
        rollout = world.codex(_PID, bench.inputs.small_rollout, grows=True)
        with served(world) as server, contextlib.ExitStack() as stack:
            client = web.Client(server.http)
            last = len(client.names(_CHAT)) - 1
            waiting = [stack.enter_context(_connected(server.http)) for _ in range(_EACH - 1)]
            for sock in waiting:
                sock.sendall(f"GET {_CHAT}?after={last}&wait=60 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            time.sleep(1)
            beside = statistics.median(_get_ms(server.http) for _ in range(_GETS))
            began = time.monotonic()
            with rollout.open("ab") as out:
                out.write(codex_said(last + 1))
            for sock in waiting:
                sock.recv(65536)
            took = (time.monotonic() - began) * 1e3
            client.close()
    bench.row(f"{_EACH - 1} waiters, all answered after the write", "ms", [took], target=at_most(250))
    bench.row(f"GET beside {_EACH - 1} waiters: median", "ms", [beside], target=at_most(20))


def _allow_descriptors() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
