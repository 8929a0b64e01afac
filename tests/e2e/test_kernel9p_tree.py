"""The tree of a made machine through the kernel's own 9P client: two guests, many mounts in each."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from agents9core.resolver import Resolver
from agents9core.tree.top import build_tree
from tests.e2e.fuse import within
from tests.e2e.kernel9p import HOST, PORT, Guest, start_guest
from tests.e2e.machine import SESSION, Machine, served
from tests.support.conformance import Seen, seen_by_nodes

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

VERSIONS = ("9p2000", "9p2000.u", "9p2000.L")
CACHES = ("none", "loose", "mmap")
MESSAGE = "".join(f"line {number}\n" for number in range(28_000))
"""A message of 300 KB."""
LIMIT_SECONDS = 120

PRELUDE = f"""
m=/run/m
mkdir -p $m
on() {{  # VERSION CACHE [TRANSPORT]: mount there
    case ${{3:-tcp}} in
        tcp) mount -t 9p -o trans=tcp,port={PORT},version=$1,cache=$2,ro {HOST} $m ;;
        unix) mount -t 9p -o trans=unix,version=$1,cache=$2,ro /run/9p.sock $m ;;
    esac
}}
step() {{  # NAME: wait until the test has done something
    touch /run/guest/$1.reached
    until [ -e /run/guest/$1.done ]; do sleep 0.05; done
}}
said() {{ "$@" 2>&1 | sed 's/.*: //'; }}
"""
RELAY = """
import socket, threading
def pump(source, target):
    while data := source.recv(1 << 18):
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)
listener = socket.socket(socket.AF_UNIX)
listener.bind("/run/9p.sock")
listener.listen()
while True:
    client, _ = listener.accept()
    other = socket.create_connection(({host!r}, {port}))
    for ends in ((client, other), (other, client)):
        threading.Thread(target=pump, args=ends, daemon=True).start()
"""
COMMANDS = """\
cat >/run/relay.py <<'END'{relay}END
cd /
python3 /run/relay.py &
relay=$!
{prelude}
{commands}
kill $relay
"""
LOOK = """
ls -lR | cut -c 1-10 | grep ^[d-]r | sort | uniq -c | xargs
find active claude codex sessions skills -type f -exec stat -c '%n %s %Y' {} + | LC_ALL=C sort
echo --
find active claude codex sessions skills -type f | LC_ALL=C sort | xargs md5sum | md5sum
find active -newer active/claude/601/chat/00000001-assistant -name '0*' | LC_ALL=C sort | xargs
grep -rl needle active skills | LC_ALL=C sort | xargs
cat active/claude/601/chat/00000004-user | md5sum
df . | tail -n 1 | cut -d ' ' -f 1
said cat active/claude/601/chat/4-user
said getfattr -d active/claude/601/session
"""
GLANCE = """
ls active/claude/601/chat | xargs
cat active/claude/601/chat/00000004-user | md5sum
"""


def md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path / "machine")
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}
    machine.says("assistant", [{"type": "text", "text": "naïve 漢"}, call], 2)
    machine.says("user", [{"type": "tool_result", "tool_use_id": "t", "content": "a needle\n"}], 3)
    machine.says("user", MESSAGE, 4)
    skill = machine.home / ".claude" / "skills" / "sewing"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("# needle and thread\n")
    return machine


class Driver:
    """A guest whose commands stop at steps for the test to do something."""

    def __init__(self, guest: Guest, work: Path, server: int) -> None:
        self.server = server
        self._guest = guest
        self._work = work

    def at(self, step: str, action=lambda: None) -> None:
        """Wait for the guest to reach *step*, act, and let it go on."""
        until = time.monotonic() + LIMIT_SECONDS
        while not (self._work / f"{step}.reached").exists():
            assert time.monotonic() < until, f"it did not come to {step}"
            assert not (self._work / "status").exists(), f"it ended before {step}"
            time.sleep(0.02)
        action()
        (self._work / f"{step}.done").touch()

    def lines(self) -> list[str]:
        """Return what it said, once it has ended well."""
        outcome = self._guest.finish()
        assert (outcome.status, outcome.stderr) == (0, "")
        assert "unknown error" not in outcome.dmesg
        assert "BUG" not in outcome.dmesg
        return outcome.stdout.splitlines()


@pytest.fixture
def boot(machine, tmp_path):
    """Serve *machine* as a user does, and boot guests before it."""
    socket_file = tmp_path / "9p.sock"
    work = tmp_path / "guest"
    guests: list[Guest] = []
    with served(machine, "--9p", f"unix:{socket_file}") as server:

        def start(commands: str) -> Driver:
            script = COMMANDS.format(
                relay=RELAY.format(host=HOST, port=PORT), prelude=PRELUDE, commands=commands
            )
            guests.append(start_guest(work, socket_file, script, "9p2000.L"))
            return Driver(guests[-1], work, server.process.pid)

        yield start
        for guest in guests:
            guest.end()


def test_every_dialect_cache_and_transport_shows_the_whole_tree(machine, boot):
    commands = f"""
    look() {{ {LOOK} }}
    glance() {{ {GLANCE} }}
    for version in {" ".join(VERSIONS)}; do
        for how in {" ".join(f"{cache}:tcp:look" for cache in CACHES)} none:unix:glance; do
            echo "== $version $how"
            transport=${{how#*:}}
            on $version ${{how%%:*}} ${{transport%:*}}
            cd $m; ${{how##*:}}; cd /
            umount $m
        done
    done
    """
    mounts = sections(boot(commands).lines())
    nodes = seen_by_nodes(build_tree(Resolver(str(machine.proc))))
    looked, glanced = expected_look(nodes), [CHAT_NAMES, f"{md5(MESSAGE.encode())}  -"]
    for version in VERSIONS:
        linux = ["Operation not supported"] if version == "9p2000.L" else []
        for cache in CACHES:
            assert mounts.pop(f"{version} {cache}:tcp:look") == [*looked, *linux], (version, cache)
        assert mounts.pop(f"{version} none:unix:glance") == glanced
    assert mounts == {}


def sections(lines: list[str]) -> dict[str, list[str]]:
    """Return the lines below each heading."""
    found: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith("== "):
            current = found.setdefault(line.removeprefix("== "), [])
        else:
            current.append(line)
    return found


CHAT_NAMES = "00000000-user 00000001-assistant 00000002-bash 00000003-bash-result 00000004-user"


def expected_look(nodes: dict[str, Seen]) -> list[str]:
    """Return what LOOK prints of these nodes."""
    files = {name[1:]: seen for name, seen in nodes.items() if not seen.is_dir and name.count("/") > 1}
    count = sum(not seen.is_dir for seen in nodes.values())
    sums = "".join(f"{md5(files[name].data)}  {name}\n" for name in sorted(files))
    agent = "active/claude/601"
    needle = [f"{agent}/chat.md", f"{agent}/chat/00000003-bash-result", f"{agent}/transcript"]
    return [
        f"{count} -r-------- {len(nodes) - count} dr-x------",
        *(f"{name} {files[name].length} {files[name].seconds}" for name in sorted(files)),
        "--",
        f"{md5(sums.encode())}  -",
        f"{agent}/chat/00000003-bash-result {agent}/chat/00000004-user",
        " ".join([*needle, "skills/claude/sewing/SKILL.md"]),
        f"{md5(MESSAGE.encode())}  -",
        HOST,
        "No such file or directory",
    ]


def test_what_changes_under_a_mount(machine, boot):
    """tail -f, mapped files, remounts, unmounting with files open, an agent that ends: one guest."""
    commands = f"""
    chat=$m/active/claude/601/chat
    transcript=$m/active/claude/601/transcript
    seconds() {{ cut -d ' ' -f 1 /proc/uptime; }}
    appears() {{  # TEXT FILE: print for how long it took
        from=$(seconds)
        for n in $(seq 400); do
            if grep -q "$1" "$2"; then break; fi
            sleep 0.02
        done
        grep -c "$1" "$2"
        echo "$from $(seconds)" | awk '{{ print ($2 - $1 < 2) ? "soon" : $2 - $1 }}'
    }}
    mapped() {{
        python3 -c 'import hashlib, mmap, sys
file = open(sys.argv[1], "rb")
print(hashlib.md5(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)).hexdigest())' $1
    }}

    for version in {" ".join(VERSIONS)}; do
        echo "== tail $version"
        on $version none
        case $version in 9p2000.L) how= ;; *) how=---disable-inotify ;; esac
        tail $how -n 1 -f $transcript >/run/tail.$version &
        tail=$!
        step tail-$version
        appears "later $version" /run/tail.$version
        ls $chat | tail -n 1
        kill $tail
        wait $tail 2>/dev/null
        umount $m
    done

    for cache in {" ".join(CACHES)}; do
        echo "== mapped $cache"
        on 9p2000.L $cache
        mapped $chat/00000004-user
        umount $m
    done

    echo "== again"
    on 9p2000.L none
    mount -o remount,ro $m
    cat $m/active/claude/601/session
    umount $m
    step before-mounts
    for n in $(seq 100); do
        on 9p2000.L none && cat $m/active/claude/601/via && umount $m
    done | sort | uniq -c | xargs
    step after-mounts

    echo "== busy"
    on 9p2000.L none
    exec 5<$chat/00000004-user 6<$chat
    head -c 7 <&5
    said umount $m
    umount -l $m
    cat <&5 | tail -c 11
    on 9p2000.L none
    ls $m | head -n 1
    exec 5<&- 6<&-
    ls $m | head -n 1
    umount $m

    echo "== ends"
    on 9p2000.L none
    exec 5<$chat/00000004-user 6<$transcript 7<$chat
    head -c 7 <&5
    step ends
    until ! ls $chat >/dev/null 2>&1; do sleep 0.1; done
    said cat <&5
    said cat <&6
    said ls $chat
    ls $m/active/claude | wc -l
    ls $m/active/codex
    exec 5<&- 6<&- 7<&-
    umount $m
    """
    driver = boot(commands)
    descriptors = Path(f"/proc/{driver.server}/fd")
    for version in VERSIONS:
        driver.at(f"tail-{version}", lambda text=f"later {version}": machine.says("user", text))
    open_before = []
    driver.at("before-mounts", lambda: open_before.append(len(os.listdir(descriptors))))
    driver.at("after-mounts", lambda: within(10, lambda: len(os.listdir(descriptors)) <= open_before[0]))
    driver.at("ends", lambda: machine.end(601))
    said = sections(driver.lines())
    for number, version in enumerate(VERSIONS, 5):
        assert said.pop(f"tail {version}") == ["1", "soon", f"{number:08d}-user"]
    assert {said.pop(f"mapped {cache}")[0] for cache in CACHES} == {md5(MESSAGE.encode())}
    assert said.pop("again") == [SESSION, "100 registry"]
    assert said.pop("busy") == ["line 0", "target is busy.", "line 27999", "README", "README"]
    assert said.pop("ends") == ["line 0", *["Stale file handle"] * 3, "0", "611"]
    assert said == {}
