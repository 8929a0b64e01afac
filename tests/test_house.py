"""How the code is laid out: one class name has one meaning, folders are small, layers hold."""

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
MODULES = sorted(path for package in ("agents9core", "davserver") for path in (TOP / package).rglob("*.py"))
FOLDERS = sorted({path.parent for path in MODULES})
MOST_MODULES = 15


def classes(path):
    return [node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)]


def test_a_class_name_is_in_the_tree_once():
    counts = Counter(name for path in MODULES for name in classes(path))
    assert {name: count for name, count in counts.items() if count > 1} == {}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(TOP)))
def test_a_folder_has_few_modules(folder):
    assert len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) <= MOST_MODULES


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(TOP)))
def test_a_module_states_what_it_is(path):
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    assert docstring
    assert docstring.split("\n")[0].endswith((".", ":"))


def test_the_layers_hold():
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as main; main()"]
    done = subprocess.run([*command, "--no-cache"], cwd=TOP, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
