"""What is installed is whole: the page is in the wheel, and the command is there."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

from agents9core import __version__

TOP = Path(__file__).parent.parent


def test_the_wheel_holds_every_module_and_the_page(tmp_path):
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(tmp_path), str(TOP)], check=True, timeout=100)
    (wheel,) = tmp_path.glob("agents9-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    modules = {
        str(path.relative_to(TOP))
        for name in ("agents9core", "davserver")
        for path in (TOP / name).rglob("*.py")
    }
    static = TOP / "static"
    page = {f"davserver/static/{path.relative_to(static)}" for path in static.rglob("*") if path.is_file()}
    assert (modules | page) - packed == set()


def test_the_version_is_the_package_s():
    assert tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["version"] == __version__
