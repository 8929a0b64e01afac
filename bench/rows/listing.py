"""Listings of a long chat: PROPFIND with davfs2's properties beside nginx and rclone, and JSON."""

from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from bench import peers, web
from bench.inputs import codex_said
from bench.setting import Bench
from bench.table import at_most, at_most_times
from bench.world import chat, cpu_seconds, peak_over_idle, served

TITLE = "Listings"
NEEDS = ("nginx", "rclone")
_PID = 7
_CHAT = chat("codex", _PID)


class _Ours(NamedTuple):
    """What one server of ours took: seconds, MiB."""

    first: float
    first_byte: float
    cpu: float
    peak: float
    repeated: float
    appended: float
    json_first: float
    json_repeated: float
    after: float


class _Theirs(NamedTuple):
    first: float
    first_byte: float
    peak: float
    repeated: float
    appended: float


def measure(bench: Bench) -> None:
    directory = bench.copies(bench.inputs.rollout)
    ours: list[_Ours] = []
    theirs: dict[str, list[_Theirs]] = {"nginx": [], "rclone": []}
    for run in range(bench.runs):
        ours.append(_run(bench))
        for name, taken in theirs.items():
            if peers.has(name):
                taken.append(_peer(bench, name, directory, run))
    _rows(bench, _columns(ours), {name: _columns(taken) for name, taken in theirs.items() if taken})
    for name in theirs:
        if not theirs[name]:
            bench.table.leave_out(f"listings beside {name}", f"no {name}")


def _columns(taken: list) -> dict[str, list[float]]:
    return {name: [getattr(one, name) for one in taken] for name in taken[0]._fields}


def _run(bench: Bench) -> _Ours:
    with bench.world() as world:
        rollout = world.codex(_PID, bench.inputs.rollout, grows=True)
        with served(world) as server:
            client = web.Client(server.http)
            count = len(client.names(_CHAT))  # indexed from here on
            cpu = cpu_seconds(server.pid)
            answers = []
            peak = peak_over_idle(server.pid, lambda: answers.append(web.propfind(server.http, _CHAT)))
            cpu = cpu_seconds(server.pid) - cpu
            repeated = web.propfind(server.http, _CHAT).seconds
            json = [web.get(server.http, _CHAT, "application/json").seconds for _ in range(2)]
            after = web.get(server.http, f"{_CHAT}?after={count - 1}", "application/json").seconds
            with rollout.open("ab") as out:
                out.write(codex_said(count))
            appended = web.propfind(server.http, _CHAT).seconds
            [first] = answers
            times = (first.seconds, first.first_byte_seconds, cpu, peak, repeated, appended)
            return _Ours(*times, *json, after)


def _peer(bench: Bench, name: str, directory: Path, run: int) -> _Theirs:
    more = directory / "chat" / "99999999-assistant"
    with ExitStack() as stack:
        if name == "nginx":
            port, pid = stack.enter_context(peers.nginx(directory, bench.base / f"nginx-{run}"))
        else:
            port, pid = stack.enter_context(peers.rclone(directory))
        answers = []
        peak = peak_over_idle(pid, lambda: answers.append(web.propfind(port, "/chat/")))
        repeated = web.propfind(port, "/chat/").seconds
        more.write_bytes(b"one more\n")
        try:
            appended = web.propfind(port, "/chat/").seconds
        finally:
            more.unlink()
        [first] = answers
        return _Theirs(first.seconds, first.first_byte_seconds, peak, repeated, appended)


def _rows(bench: Bench, ours: dict[str, list[float]], theirs: dict[str, dict[str, list[float]]]) -> None:
    of = f"PROPFIND of {bench.size.messages:,}"
    limits = {
        ("first", "nginx"): at_most_times(1.5),
        ("first", "rclone"): at_most_times(0.25),
        ("repeated", "nginx"): at_most_times(0.2),
    }
    names = {"first": "first", "repeated": "repeated", "appended": "after one more message"}
    for what, name in names.items():
        for peer, taken in theirs.items():
            bench.row(f"{of}: {name}", "s", ours[what], taken[what], peer, limits.get((what, peer)))
    nginx = theirs.get("nginx", {})
    bench.row(f"{of}: first byte", "ms", _ms(ours["first_byte"]), _ms(nginx.get("first_byte", [])), "nginx",
              at_most(20))  # fmt: skip
    rclone = theirs.get("rclone", {})
    bench.row(
        f"{of}: peak memory over idle", "MiB", ours["peak"], rclone.get("peak", []), "rclone", at_most(40)
    )
    bench.row(f"{of}: the server's CPU, first", "s", ours["cpu"])
    as_json = f"JSON listing of {bench.size.messages:,}"
    bench.row(f"{as_json}: first", "s", ours["json_first"], ours["first"], "PROPFIND", at_most_times(0.5))
    bench.row(f"{as_json}: repeated", "s", ours["json_repeated"], ours["repeated"], "PROPFIND, repeated")
    bench.row("?after= the last, of the same", "ms", _ms(ours["after"]), target=at_most(5))


def _ms(seconds: list[float]) -> list[float]:
    return [value * 1e3 for value in seconds]
