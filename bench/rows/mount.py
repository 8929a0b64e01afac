"""The kernel's client, in the guest of the end-to-end tests, on our server and on diod."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from bench import peers
from bench.counting import Proxy
from bench.setting import Bench
from bench.table import at_most, at_most_times
from bench.world import chat, served
from tests.e2e.kernel9p import start_guest

TITLE = "Kernel mount"
NEEDS = ("diod", "linux.uml")
_LIMIT_SECONDS = 300
_MESSAGES_A_FILE = {"none": 7, "loose": 2}
"""What v9fs 6.1 needs for `ls -l` of a file: 2 walks, 3 getattrs and 2 clunks, or a walk and a getattr."""
_FEW = 0.1
"""Of a message: what the mount and the directory itself add, a file."""
_OPTIONS = "access=any,uname=root,dfltuid=0,dfltgid=0"
"""diod wants to know whom it serves."""
_TCLUNK = 120
_MANY = 1000
_TIMED = """\
t() { # in a subshell, in the directory itself: without a cache each step of a path is asked for again
    begun=$(date +%s%N); said=$(eval "$2"); ended=$(date +%s%N)
    echo "$1 $said $((ended - begun))"
}
"""


class Place(NamedTuple):
    """Where a server listens, and what is where in it."""

    socket: Path
    options: str
    few: str
    many: str


def measure(bench: Bench) -> None:
    if not peers.has("linux.uml"):
        bench.table.leave_out("kernel mount", "no linux.uml")
        return
    with ExitStack() as stack:
        places = {"ours": stack.enter_context(_ours(bench))}
        if peers.has("diod"):
            places["diod"] = stack.enter_context(_diod(bench))
        else:
            bench.table.leave_out("kernel mount beside diod", "no diod")
        for cache in _MESSAGES_A_FILE:
            _times(bench, places, cache)
        for cache in _MESSAGES_A_FILE:
            _messages(bench, cache)


@contextmanager
def _ours(bench: Bench) -> Iterator[Place]:
    with bench.world() as world:
        world.codex(7, bench.inputs.mounted_rollout)
        world.codex(8, bench.inputs.rollout)
        listens = world.base / "socket"
        with served(world, "--9p", f"unix:{listens}"):
            yield Place(listens, "", chat("codex", 7)[1:-1], chat("codex", 8)[1:-1])


@contextmanager
def _diod(bench: Bench) -> Iterator[Place]:
    root = bench.base / "exported"
    root.mkdir()
    for name, rollout in (("few", bench.inputs.mounted_rollout), ("many", bench.inputs.rollout)):
        (bench.copies(rollout) / "chat").rename(root / name)
    listens = bench.base / "diod-socket"
    try:
        with peers.diod(root, listens):
            yield Place(listens, f"aname={root}", "few", "many")
    finally:
        for name, rollout in (("few", bench.inputs.mounted_rollout), ("many", bench.inputs.rollout)):
            (root / name).rename(bench.copies(rollout) / "chat")


def _times(bench: Bench, places: dict[str, Place], cache: str) -> None:
    taken = {name: [] for name in places}
    for _ in range(bench.runs):
        for name, place in places.items():
            commands = [f't ls "cd {place.few}; ls -l | wc -l"', f't cat "cd {place.few}; cat * | wc -c"']
            commands += [f't many "cd {place.many}; ls -l | wc -l"'] if cache == "loose" else []
            taken[name].append(
                _run(bench, place.socket, f"cache={cache},{_OPTIONS},{place.options}", commands)
            )
    if len({tuple(said for said, _ in run.values()) for runs in taken.values() for run in runs}) > 1:
        raise AssertionError(f"not the same files: {taken}")
    size = bench.size
    names = {"ls": f"ls -l of {size.mounted:,}", "cat": f"cat of all {size.mounted:,}"}
    names |= {"many": f"ls -l of {size.messages:,}"} if cache == "loose" else {}
    for what, name in names.items():
        columns = [[run[what][1] for run in runs] for runs in taken.values()]
        limit = at_most_times(0.7) if len(columns) > 1 else None
        bench.row(f"cache={cache}: {name}", "s", *columns, "diod" if limit else "", limit)


def _run(bench: Bench, listens: Path, options: str, commands: list[str]) -> dict[str, tuple[str, float]]:
    """Run commands in a new guest: what each said, and the seconds that it took."""
    work = bench.base / f"guest-{time.monotonic_ns()}"
    guest = start_guest(work, listens, _TIMED + "\n".join(commands), "9p2000.L", options.strip(","))
    deadline = time.monotonic() + _LIMIT_SECONDS
    while not (work / "status").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    outcome = guest.finish()
    if outcome.status or outcome.stderr:
        raise OSError(f"the guest: {outcome}")
    lines = [line.split() for line in outcome.stdout.splitlines()]
    return {what: (said, int(nanoseconds) / 1e9) for what, said, nanoseconds in lines}


def _messages(bench: Bench, cache: str) -> None:
    """Count what `ls -l` of one directory sends."""
    count = bench.size.mounted
    with bench.world() as world:
        world.codex(7, bench.inputs.mounted_rollout)
        with served(world) as server:
            proxy = Proxy(world.base / "proxy", server.ninep)
            _run(
                bench,
                world.base / "proxy",
                f"cache={cache},{_OPTIONS}",
                [f't ls "cd {chat("codex", 7)[1:-1]}; ls -l | wc -l"'],
            )
            proxy.close()
    sent = proxy.counts.total()
    if cache == "loose":
        sent -= proxy.counts[_TCLUNK]  # of every file, when the mount ends
    needed = _MESSAGES_A_FILE[cache]
    name = f"cache={cache}: messages a file, ls -l of {count:,}"
    few = _FEW if count > _MANY else 3
    bench.row(name, "", [sent / count], [needed], "v9fs's need", at_most(needed + few))
