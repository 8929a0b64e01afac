"""The Linux kernel's own 9P client, in a guest that lives for a few seconds.

The guest is Debian's user-mode-linux: a kernel that runs as a process and needs no virtualisation. Its root
is the host's, read-only. It sits in a network namespace of its own, where its one neighbour passes what it
sends to port 564 on to the server's unix socket:

    start_guest                            (the test)
      unshare: namespaces of its own
        python kernel9p.py                 a tap device, the neighbour on it
          linux.uml init=GUEST_INIT        loads 9p, mounts, runs the commands in the mount, unmounts
                                           leaves stdout, stderr and status in the work directory
"""

import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

HOST, GUEST, PORT = "10.9.0.1", "10.9.0.2", 564
MODULES = Path("/usr/lib/uml/modules")
WANTED = ("kernel/net/9p/9pnet_fd.ko", "kernel/fs/9p/9p.ko")
MOUNT_FAILED = 126
LIMIT_SECONDS = 240

GUEST_INIT = """\
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mkdir /run/guest /run/mnt
mount -t hostfs -o {work} none /run/guest
mount -t tmpfs tmpfs /tmp
for module in {modules}; do insmod $module; done
ip link set lo up
ip addr add {guest}/24 dev vec0
ip link set vec0 up
exec >/run/guest/stdout 2>/run/guest/stderr </dev/null
if mount -t 9p -o {options} {host} /run/mnt; then
    cd /run/mnt
    sh /run/guest/commands
    status=$?
    cd /
    umount /run/mnt || status=$?
else
    status={mount_failed}
fi
dmesg >/run/guest/dmesg
echo $status >/run/guest/status
exec >/dev/null 2>&1
umount /run/guest
echo o >/proc/sysrq-trigger
sleep 60
"""


class Outcome(NamedTuple):
    """What the commands in the guest came to; MOUNT_FAILED where there was no mount."""

    status: int
    stdout: str
    stderr: str
    dmesg: str


class Guest:
    """A guest that runs."""

    def __init__(self, process: subprocess.Popen[bytes], work: Path) -> None:
        self._process = process
        self._work = work

    def finish(self) -> Outcome:
        """Wait for its end. Raises TimeoutExpired, and FileNotFoundError for a guest that broke down."""
        try:
            self._process.wait(LIMIT_SECONDS)
        finally:
            self.end()
        said = [(self._work / name).read_text() for name in ("stdout", "stderr", "dmesg")]
        return Outcome(int((self._work / "status").read_text()), *said)

    def end(self) -> None:
        """End it now, if it still runs."""
        self._process.kill()
        self._process.wait()


def start_guest(work: Path, server: Path, commands: str, version: str, options: str = "") -> Guest:
    """Boot a guest that mounts the unix socket *server* and runs *commands* with the mount as its directory.

    *work* is an empty directory for what passes between; *options* are more options of mount.
    """
    work.mkdir()
    (work / "commands").write_text(commands)
    mount = ",".join(filter(None, ["trans=tcp", f"port={PORT}", f"version={version}", options]))
    places = {"work": work, "guest": GUEST, "host": HOST, "mount_failed": MOUNT_FAILED}
    init = GUEST_INIT.format(modules=" ".join(modules()), options=mount, **places)
    (work / "init").write_text(init)
    (work / "init").chmod(0o755)
    unshare = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        unshare.insert(1, "--map-root-user")
    with (work / "console").open("wb") as console:
        process = subprocess.Popen(
            [*unshare, sys.executable, __file__, server, work],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
        )
    return Guest(process, work)


def modules() -> list[str]:
    """Return the kernel modules of v9fs in the order of loading."""
    [release] = MODULES.iterdir()
    needs = dict(line.split(":") for line in (release / "modules.dep").read_text().splitlines())
    order: dict[str, None] = {}
    for wanted in WANTED:
        order.update(dict.fromkeys([*reversed(needs[wanted].split()), wanted]))
    return [str(release / name) for name in order]


def run_guest(server: str, work: str) -> None:
    """Be the guest's neighbour, inside the namespaces, for as long as it runs."""
    ip = shutil.which("ip") or "/usr/sbin/ip"
    tap = "tap9"
    for command in (
        "link set lo up",
        f"tuntap add {tap} mode tap",
        f"addr add {HOST}/24 dev {tap}",
        f"link set {tap} up",
    ):
        subprocess.run([ip, *command.split()], check=True)
    listener = socket.create_server((HOST, PORT))
    threading.Thread(target=pass_on, args=(listener, server), daemon=True).start()
    kernel = ["linux.uml", "mem=256M", "ro", "rootfstype=hostfs", "rootflags=/", f"init={work}/init"]
    console = ["con=null", "con0=null,fd:1", "quiet", "panic=-1"]
    environ = {**os.environ, "TMPDIR": "/dev/shm", "LD_PRELOAD": build_shim(Path(work))}
    network = f"vec0:transport=tap,ifname={tap},depth=128,gro=1"
    subprocess.run([*kernel, *console, network], env=environ, check=False)


def build_shim(work: Path) -> str:
    """Compile what lets the guest's kernel run on a processor that is newer than it is; see its source."""
    source, shim = Path(__file__).with_name("uml_xstate.c"), work / "uml_xstate.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", shim, source, "-ldl"], check=True)
    return str(shim)


def pass_on(listener: socket.socket, server: str) -> None:
    """Connect each client of *listener* to the unix socket *server*."""
    while True:
        client, _ = listener.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        other = socket.socket(socket.AF_UNIX)
        other.connect(server)
        for source, target in ((client, other), (other, client)):
            threading.Thread(target=pump, args=(source, target), daemon=True).start()


def pump(source: socket.socket, target: socket.socket) -> None:
    while data := source.recv(1 << 18):
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    run_guest(*sys.argv[1:])
