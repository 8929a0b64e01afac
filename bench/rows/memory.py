"""Memory: of an index, of a long line, of a server that has nothing to do; and how long a start takes."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench import client9p, peers, web
from bench.setting import Bench
from bench.table import at_most, at_most_more, at_most_times
from bench.world import (
    Server,
    chat,
    in_turns,
    memory_mib,
    peak_over_idle,
    running,
    served,
    timed,
)

TITLE = "Memory and start"
NEEDS = ()
_LITERALLY = "import wsgidav, cheroot"
_WHOLE = "import wsgidav.wsgidav_app, cheroot.wsgi"
_MIB = 1 << 20
_TOP = Path(__file__).parent.parent.parent
_INDEX_ONCE = """
import os, sys
from pathlib import Path
from bench.rows.index import index, reader_of
from bench.world import peak_over_idle
print(peak_over_idle(os.getpid(), lambda: index(Path(sys.argv[1]), reader_of(sys.argv[2]))))
"""


def measure(bench: Bench) -> None:
    _indexes(bench)
    _long_message(bench)
    _idle(bench)


def _indexes(bench: Bench) -> None:
    inputs, runs = bench.inputs, range(bench.runs)
    for harness, path in (("codex", inputs.rollout), ("claude", inputs.transcript)):
        of = path.stat().st_size
        grown = [_index_once(path, harness) for _ in runs]
        name = f"peak of a cold index, {harness}, {of / 1e6:.0f} MB, over idle"
        bench.row(name, "MiB", grown, [of / _MIB] * len(grown), "the file", at_most(24))
    line = inputs.long_line
    grown = [_index_once(line, "codex") for _ in runs]
    long = [bench.size.line_bytes / _MIB] * len(grown)
    name = f"peak of a cold index with a line of {long[0]:.0f} MiB"
    bench.row(name, "MiB", grown, long, "the line", at_most_times(3))


def _index_once(path: Path, harness: str) -> float:
    """Index a file in a process of its own, and return what it grew by."""
    command = [sys.executable, "-c", _INDEX_ONCE, str(path), harness]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _long_message(bench: Bench) -> None:
    for front_end, read in (("HTTP", _over_http), ("9P", _over_9p)):
        with _indexed(bench, bench.inputs.long_line) as server:
            run = _reading(server, read)
            whole = f"a message of {bench.size.line_bytes / _MIB:.0f} MiB, read over {front_end}"
            grown = [peak_over_idle(server.pid, run) for _ in range(bench.runs)]
            bench.row(f"{whole}: peak over idle", "MiB", grown, target=at_most(8))
            with _indexed(bench, bench.inputs.quarter_line) as other:
                quarter = _reading(other, read)
                pace = in_turns(bench.runs, partial(_quarter_seconds, run), partial(timed, quarter))
        bench.row(f"{whole}: time a quarter", "s", *pace, "one of a quarter", at_most_times(1.25))


def _quarter_seconds(run: Callable[[], None]) -> float:
    return timed(run) / 4


@contextmanager
def _indexed(bench: Bench, rollout: Path) -> Iterator[Server]:
    with bench.world() as world:
        world.codex(7, rollout)
        with served(world) as server:
            web.get(server.http, chat("codex", 7))
            yield server


def _reading(server: Server, read: Callable[[Server, str], None]) -> Callable[[], None]:
    client = web.Client(server.http)
    [name] = [name for name in client.names(chat("codex", 7)) if "result" in name]
    client.close()
    return lambda: read(server, chat("codex", 7) + name)


def _over_http(server: Server, path: str) -> None:
    web.get(server.http, path)


def _over_9p(server: Server, path: str) -> None:
    client = client9p.Client(server.ninep)
    client.read_through(path.strip("/"), 1 << 40)
    client.close()


def _idle(bench: Bench) -> None:
    python = peers.plain_python()
    if python is None:
        bench.table.leave_out("idle memory, start", "wsgidav cannot be installed")
        return
    packages = [str(_TOP / name) for name in ("agents9core", "davserver")]
    subprocess.run([python, "-m", "compileall", "-q", *packages], check=True)  # a start compiles nothing
    for code, more, times in ((_LITERALLY, at_most_more(12), at_most_times(1.5)), (_WHOLE, None, None)):
        ours, theirs = in_turns(
            bench.runs, lambda: _served_idle(bench, python), lambda c=code: _imported(python, c)
        )
        bench.row("memory of an idle server", "MiB", ours, theirs, code, more)
        ours, theirs = in_turns(
            bench.runs, lambda: _start(bench, python), lambda c=code: _import_seconds(python, c)
        )
        bench.row("start until both front ends listen", "s", ours, theirs, code, times)


def _served_idle(bench: Bench, python: Path) -> float:
    with bench.world() as world, served(world, python=python) as server:
        time.sleep(0.2)
        return memory_mib(server.pid)


def _start(bench: Bench, python: Path) -> float:
    with bench.world() as world, served(world, python=python) as server:
        return server.seconds


def _imported(python: Path, code: str) -> float:
    command = [str(python), "-c", f"{code}\nprint(flush=True)\ninput()"]
    with running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        return memory_mib(process.pid)


def _import_seconds(python: Path, code: str) -> float:
    return timed(lambda: subprocess.run([python, "-c", code], check=True))
