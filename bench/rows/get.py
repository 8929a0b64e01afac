"""GET: of messages by wrk and of a whole transcript, beside cheroot alone, a stock WsgiDAV and rclone."""

import os
from contextlib import ExitStack
from functools import partial

from bench import peers, web
from bench.setting import Bench
from bench.table import at_least_times, at_most
from bench.world import chat, in_turns, served

TITLE = "GET"
NEEDS = ("wrk", "rclone")
_CONNECTIONS = (1, 8, 32)
_PATHS = 2000
_MANY = 32
_LEAST = {
    "cheroot": {1: 1.1, 8: 1.3, 32: 1.3},
    "wsgidav": {1: 2.5, 8: 4, 32: 4},
    "rclone": {1: 0.7},
}
"""How many times the rate of each server, by the number of connections."""


def measure(bench: Bench) -> None:
    copies = bench.copies(bench.inputs.rollout)
    with bench.world() as world, ExitStack() as stack:
        world.codex(7, bench.inputs.rollout)
        world.claude(8, bench.inputs.transcript)
        server = stack.enter_context(served(world))
        names = web.Client(server.http).names(chat("codex", 7))
        names = names[:: max(1, len(names) // _PATHS)]
        mean = sum(os.path.getsize(copies / "chat" / name) for name in names) // len(names)
        bare = stack.enter_context(peers.bare(bench.inputs.transcript, mean))
        _transcript(bench, server.http, bare)
        if not peers.has("wrk"):
            bench.table.leave_out("GET of messages", "no wrk")
            return
        stock = stack.enter_context(peers.wsgidav("files", copies))
        servers = {
            "ours": (server.http, chat("codex", 7)),
            "cheroot": (bare, "/"),
            "wsgidav": (stock, "/chat/"),
        }
        if peers.has("rclone"):
            servers["rclone"] = (stack.enter_context(peers.rclone(copies))[0], "/chat/")
        else:
            bench.table.leave_out("GET of messages beside rclone", "no rclone")
        _messages(bench, servers, names)


def _transcript(bench: Bench, port: int, bare: int) -> None:
    size = bench.inputs.transcript.stat().st_size / 1e6
    path = "/active/claude/8/transcript"
    web.get(port, path)
    ours, theirs = in_turns(
        bench.runs,
        lambda: size / web.get(port, path).seconds,
        lambda: size / web.get(bare, "/file").seconds,
    )
    bench.row(f"GET of a transcript of {size:.0f} MB", "MB/s", ours, theirs, "cheroot", at_least_times(0.9))


def _messages(bench: Bench, servers: dict[str, tuple[int, str]], names: list[str]) -> None:
    seconds = max(1, round(bench.size.seconds / 20))
    loads = {}
    for server, (_, base) in servers.items():
        (bench.base / f"wrk-{server}").mkdir()
        loads[server] = web.write_script(bench.base / f"wrk-{server}", [base + name for name in names])
    for connections in _CONNECTIONS:
        measures = [
            partial(web.wrk, port, loads[server], connections, seconds)
            for server, (port, _) in servers.items()
        ]
        taken = dict(zip(servers, in_turns(bench.runs, *measures), strict=True))
        rate = {server: [load.per_second for load in samples] for server, samples in taken.items()}
        p99 = {server: [load.p99_ms for load in samples] for server, samples in taken.items()}
        of = f"GET of messages, {connections} connection{'s' * (connections > 1)}"
        for server, least in _LEAST.items():
            if server in rate:
                limit = at_least_times(least[connections]) if connections in least else None
                bench.row(of, "/s", rate["ours"], rate[server], server, limit)
        limit = at_most(60) if connections == _MANY else None
        bench.row(f"{of}: p99", "ms", p99["ours"], p99["cheroot"], "cheroot", limit)
