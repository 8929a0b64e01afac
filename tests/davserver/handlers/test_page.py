import re
from pathlib import Path

import pytest

from davserver.handlers.page import installed_directory

STATIC = Path(__file__).parents[3] / "static"
TYPES = {".html", ".js", ".mjs", ".css", ".svg"}


def test_a_checkout_serves_its_own_files():
    assert installed_directory() == STATIC


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("index.html", "text/html; charset=utf-8"),
        ("page.js", "text/javascript; charset=utf-8"),
        ("page.css", "text/css; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
        ("vendor/markdown-it.esm.min.mjs", "text/javascript; charset=utf-8"),
        ("vendor/highlight.min.js", "text/javascript; charset=utf-8"),
    ],
)
def test_the_files_of_the_page_are_served_with_their_types(client, name, media_type):
    reply = client.get(f"/.page/{name}")
    assert reply.body == (STATIC / name).read_bytes()
    assert reply["Content-Type"] == media_type
    again = client.get(f"/.page/{name}", If_None_Match=reply["ETag"])
    assert (again.status, again["ETag"]) == (304, reply["ETag"])
    assert client.get(f"/.page/{name}", If_Match='"x"').status == 412


@pytest.mark.parametrize("target", ["/", "/.page/page.js"])
def test_the_page_may_only_run_its_own_script_and_ask_its_own_server(client, target):
    policy = client.get(target, Accept="text/html")["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


NOTHING = ("/", "", "/none", "/page.js/", "/..%2fpage.js", "/vendor/", "/vendor%2fhighlight.min.js")


@pytest.mark.parametrize("target", [*NOTHING, "/vendor/README.md"])
def test_there_is_nothing_else_under_the_prefix(client, target):
    assert client.get("/.page" + target).status == 404


def test_the_prefix_is_not_in_the_tree(client):
    assert ".page" not in client.get("/").body.decode()
    assert client.ask("PROPFIND", "/.page/", Depth="1").status == 404


def loaded_by(name):
    """The files that a file of the page loads, as their names below `/.page/`."""
    text = (STATIC / name).read_text()
    if name.endswith(".html"):
        return set(re.findall(r'(?:src|href)="/.page/([^"]+)"', text))
    return set(re.findall(r'(?:from |import\()"\./([^"]+)"', text))


def test_what_the_page_loads_is_there_and_what_is_there_is_loaded(client):
    index = client.get("/", Accept="text/html").body.decode()
    assert index == (STATIC / "index.html").read_text()
    wanted, loaded = {"index.html"}, set()
    while wanted:
        name = wanted.pop()
        loaded.add(name)
        assert client.get(f"/.page/{name}").status == 200
        if "vendor/" not in name:
            wanted |= loaded_by(name) - loaded
    served = {path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*.*") if path.suffix in TYPES}
    assert served - loaded == set()


@pytest.mark.parametrize("target", ["/active/claude/9/chat/", "/none", "/file.txt/"])
def test_a_browser_is_told_by_the_page_what_is_not_there_and_others_by_a_line(client, target):
    reply = client.get(target, Accept="text/html,*/*;q=0.8")
    assert (reply.status, reply["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert reply.body == (STATIC / "index.html").read_bytes()
    assert client.get(target).body == client.get(target, Accept="application/json").body == b"404 Not Found\n"


OURS = sorted(path.name for path in STATIC.glob("*.js"))


@pytest.mark.parametrize("name", OURS)
def test_nothing_that_an_agent_said_can_become_markup(name):
    script = (STATIC / name).read_text()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(", script)
    assert not re.search(r"createContextualFragment|DOMParser|srcdoc|setHTML", script)


def test_each_vendored_file_is_named_with_its_version_and_licence():
    vendor = STATIC / "vendor"
    said = (vendor / "README.md").read_text()
    assert [
        path.name for path in vendor.iterdir() if path.name not in said and path.name != "README.md"
    ] == []
    assert len(list(vendor.glob("*.LICENSE"))) == 2
