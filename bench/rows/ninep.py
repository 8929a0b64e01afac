"""9P by a client of our own, beside diod on a directory of the same files."""

import os
from contextlib import ExitStack
from functools import partial

from bench import peers
from bench.client9p import Client, fetch, look, names_per_second
from bench.setting import Bench
from bench.table import at_least_times
from bench.world import chat, in_turns, served, timed

TITLE = "9P, raw client"
NEEDS = ("diod",)
_DEPTHS = (1, 32)
_MSIZES = {"64K": 64 << 10, "512K": 512 << 10, "1M": 1 << 20}
_IOHDRSZ = 24
_SEQUENTIAL_BYTES = 100_000_000
_DIRECTORY = 1


def measure(bench: Bench) -> None:
    with bench.world() as world, ExitStack() as stack:
        world.codex(7, bench.inputs.rollout)
        world.claude(8, bench.inputs.transcript)
        server = stack.enter_context(served(world))
        places = {"ours": (server.ninep, "", chat("codex", 7).strip("/"), "active/claude/8/transcript")}
        if peers.has("diod"):
            copies = bench.copies(bench.inputs.rollout)
            transcript = copies / "transcript"
            if not transcript.exists():
                os.link(bench.inputs.transcript, transcript)
            port = stack.enter_context(peers.diod(copies))
            places["diod"] = (port, str(copies), "chat", "transcript")
        else:
            bench.table.leave_out("9P beside diod", "no diod")
        _small(bench, places)
        _sequential(bench, places)


def _small(bench: Bench, places: dict[str, tuple[int, str, str, str]]) -> None:
    clients = {name: _client(*place[:3]) for name, place in places.items()}
    names = sorted(path.name for path in (bench.copies(bench.inputs.rollout) / "chat").iterdir())
    count = min(len(names), bench.size.looks)
    names = names[:: len(names) // count][:count]
    listed = {client.names(_DIRECTORY) for client in clients.values()}
    if len(listed) > 1:
        raise AssertionError(f"not the same files: {listed}")
    of = f"9P readdir of {bench.size.messages:,}"
    _row(bench, of, "/s", {name: partial(_readdir, client) for name, client in clients.items()}, 1.2)
    for what, conversation in (("walk, getattr, clunk", look), ("walk, open, read, clunk", fetch)):
        for depth in _DEPTHS:
            runs = {
                name: partial(names_per_second, client, conversation, _DIRECTORY, names, depth)
                for name, client in clients.items()
            }
            _row(bench, f"9P {what}: {depth} at once", "/s", runs, 1.2)
    for client in clients.values():
        client.close()


def _row(bench: Bench, name: str, unit: str, runs: dict, limit: float) -> None:
    taken = in_turns(bench.runs, *runs.values())
    bench.row(
        name,
        unit,
        *taken,
        "diod" if len(taken) > 1 else "",
        at_least_times(limit) if len(taken) > 1 else None,
    )


def _client(port: int, aname: str, directory: str) -> Client:
    client = Client(port, aname)
    client.walk(_DIRECTORY, directory)
    client.names(_DIRECTORY)
    return client


def _readdir(client: Client) -> float:
    names = []
    return 1 / timed(lambda: names.append(client.names(_DIRECTORY))) * names[0]


def _sequential(bench: Bench, places: dict[str, tuple[int, str, str, str]]) -> None:
    size = min(_SEQUENTIAL_BYTES, bench.inputs.transcript.stat().st_size)
    for said, msize in _MSIZES.items():
        clients = {
            name: (Client(port, aname, msize + _IOHDRSZ), path)
            for name, (port, aname, _, path) in places.items()
        }
        runs = {name: partial(_rate, client, path, size) for name, (client, path) in clients.items()}
        _row(bench, f"9P read of {size / 1e6:.0f} MB, msize {said}", "MB/s", runs, 0.7)
        for client, _ in clients.values():
            client.close()


def _rate(client: Client, path: str, size: int) -> float:
    return size / 1e6 / timed(lambda: client.read_through(path, size))
