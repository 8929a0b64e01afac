"""The others: nginx, rclone, diod, a stock WsgiDAV and a bare cheroot, each for as long as a block runs."""

import os
import shutil
import socket
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from bench.table import DEPENDENCIES, said
from bench.world import running

PACKAGES = {
    "wrk": ("wrk",),
    "rclone": ("rclone",),
    "nginx": ("nginx-extras", "libnginx-mod-http-dav-ext"),
    "diod": ("diod",),
    "linux.uml": ("user-mode-linux", "iproute2", "kmod"),
}
"""By the program that they bring."""
_DAV_EXT = Path("/usr/lib/nginx/modules/ngx_http_dav_ext_module.so")
_DATA = Path(__file__).parent / "data"
_READY_SECONDS = 10


def has(program: str) -> bool:
    """Say whether a program of PACKAGES is there."""
    return shutil.which(program) is not None and (program != "nginx" or _DAV_EXT.exists())


def install(programs: set[str]) -> None:
    """Install the Debian packages of the programs that are missing, if root may."""
    packages = [name for program in sorted(programs) if not has(program) for name in PACKAGES[program]]
    if not packages or os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    # runlevel 1: nginx's package would start it
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    apt = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    subprocess.run(["apt-get", "update", "-qq"], env=environ, check=False)
    subprocess.run(apt, env=environ, stdout=subprocess.DEVNULL, check=False)


def versions() -> dict[str, str]:
    """Return the versions of those that are there."""
    asked = {"wrk": "--version", "rclone": "version", "nginx": "-v"}
    found = {name: said(name, option) for name, option in asked.items() if has(name)}
    packaged = ("diod", "user-mode-linux")
    found |= {name: said("dpkg-query", "-W", "-f", "${Version}", name) for name in packaged}
    return found


_NGINX = """
load_module {module};
daemon off;
master_process off;
pid {base}/pid;
error_log {base}/error;
events {{ worker_connections 256; }}
http {{
    access_log off;
    sendfile on;
    keepalive_requests 1000000;
    client_body_temp_path {base}/body;
    proxy_temp_path {base}/proxy;
    fastcgi_temp_path {base}/fastcgi;
    uwsgi_temp_path {base}/uwsgi;
    scgi_temp_path {base}/scgi;
    server {{
        listen 127.0.0.1:{port};
        root {root};
        location / {{ dav_ext_methods PROPFIND OPTIONS; }}
    }}
}}
"""


@contextmanager
def nginx(root: Path, base: Path) -> Iterator[tuple[int, int]]:
    """Serve *root* by nginx dav-ext; give its port and pid. *base*: a directory for its own files."""
    base.mkdir()
    port = _free_port()
    (base / "conf").write_text(_NGINX.format(module=_DAV_EXT, base=base, port=port, root=root))
    command = ["nginx", "-c", str(base / "conf"), "-p", str(base), "-e", str(base / "error")]
    with running(command) as process:
        _wait_for(port)
        yield port, process.pid


@contextmanager
def rclone(root: Path) -> Iterator[tuple[int, int]]:
    """Serve *root* by rclone serve webdav; give its port and pid."""
    port = _free_port()
    command = ["rclone", "serve", "webdav", str(root), "--addr", f"127.0.0.1:{port}", "--read-only"]
    command += ["--config", os.devnull]
    with running(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _wait_for(port)
        yield port, process.pid


@contextmanager
def bare(file: Path, nbytes: int) -> Iterator[int]:
    """Serve bodies of *nbytes*, and *file*, by cheroot alone; give its port."""
    command = [sys.executable, "-m", "bench.bare", str(file), str(nbytes)]
    with running(command, stdout=subprocess.PIPE, text=True) as process:
        yield int(process.stdout.readline())


@contextmanager
def wsgidav(kind: str, place: Path) -> Iterator[int]:
    """Serve *files* of a directory, or the *agents* of a process table, by a stock WsgiDAV; give its port."""
    command = [sys.executable, "-m", "bench.stock_wsgidav", kind, str(place)]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        yield int(process.stdout.readline())


@contextmanager
def diod(root: Path, socket_file: Path | None = None) -> Iterator[int]:
    """Export *root* by diod; give its port. *socket_file*: where it listens too."""
    port = _free_port()
    command = ["diod", "-f", "-n", "-N", "-e", str(root), "-l", f"127.0.0.1:{port}"]
    command += ["-l", str(socket_file)] if socket_file else []
    quiet = subprocess.DEVNULL
    with running(command, stdout=quiet, stderr=quiet, cwd=root.parent):  # it may dump core when it ends
        _wait_for(port)
        yield port


def plain_python() -> Path | None:
    """Return a Python with wsgidav and what agents9 depends on; tools for developers slow its start.

    None where it cannot be made.
    """
    place = _DATA / "venv"
    python = place / "bin" / "python"
    wanted = [*(f"{name}=={metadata.version(name)}" for name in DEPENDENCIES)]
    note = place / "installed"
    if not note.exists() or note.read_text() != "\n".join(wanted):
        venv.create(place, clear=True, with_pip=True)
        install = [python, "-m", "pip", "install", "-q", *wanted]
        if subprocess.run(install, capture_output=True, check=False).returncode:
            return None
        note.write_text("\n".join(wanted))
    return python


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def _wait_for(port: int) -> None:
    """Wait until something listens. Raises OSError when nothing does for long."""
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return
