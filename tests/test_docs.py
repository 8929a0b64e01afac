"""What the README and the other documents say is so."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from agents9core.harness.table import HARNESSES
from agents9core.tree.facts import LEAVES
from agents9core.tree.top import README as TREE_README

TOP = Path(__file__).parent.parent
README = (TOP / "README.md").read_text()


def options(command):
    done = subprocess.run(
        [sys.executable, "-m", "davserver", command, "--help"], capture_output=True, text=True, check=True
    )
    return set(re.findall(r"--[a-z0-9][a-z0-9-]*", done.stdout)) - {"--help"}


COMMANDS = ["serve", "ps", "doctor"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_in_the_readme(command):
    assert [option for option in options(command) if option not in README] == []


def test_the_readme_names_no_option_that_there_is_not():
    usage = README[README.index("## Options") : README.index("## More")]
    known = set().union(*map(options, COMMANDS))
    assert set(re.findall(r"--[a-z0-9][a-z0-9-]*", usage)) - known == set()


@pytest.mark.parametrize("leaf", [leaf.name for leaf in LEAVES] + ["transcript", "chat", "threads", "agents"])
def test_every_leaf_is_in_both_readmes(leaf):
    assert re.search(rf"\b{leaf}\b", README)
    assert re.search(rf"\b{leaf}\b", TREE_README)


@pytest.mark.parametrize("harness", HARNESSES)
def test_every_harness_is_in_the_readme(harness):
    assert harness in README


def test_every_make_target_in_the_documents_is_there():
    documents = README + (TOP / "CONTRIBUTING.md").read_text()
    targets = set(re.findall(r"^([a-z]+):", (TOP / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:`|^ {4})make ([a-z]+)", documents, re.MULTILINE)) - targets == set()


DOCUMENTS = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *map(str, TOP.glob("docs/*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document):
    text = (TOP / document).read_text()
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in links if not (TOP / document).parent.joinpath(link).exists()] == []


def named_tests():
    """Yield each test that docs/SECURITY.md names, as its file and its name."""
    for row in (TOP / "docs/SECURITY.md").read_text().splitlines():
        file = None
        for cited in re.findall(r"`([^`]*\btest_\w+)`", row.rpartition(" | ")[2]):
            path, colon, name = cited.rpartition(": ")
            file = path if colon else file
            yield file, name


@pytest.mark.parametrize(("file", "name"), sorted(set(named_tests())))
def test_every_test_that_a_promise_names_is_there(file, name):
    assert f"\ndef {name}(" in (TOP / "tests" / file).read_text()


def test_promises_name_tests():
    assert len(set(named_tests())) > 80
