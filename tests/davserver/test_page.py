import re
from pathlib import Path

import pytest

from davserver.page import installed_directory

STATIC = Path(__file__).parents[2] / "static"


def test_a_checkout_serves_its_own_files():
    assert installed_directory() == STATIC


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("index.html", "text/html; charset=utf-8"),
        ("page.js", "text/javascript; charset=utf-8"),
        ("page.css", "text/css; charset=utf-8"),
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


@pytest.mark.parametrize(
    "target", ["/.page", "/.page/", "/.page/none", "/.page/page.js/", "/.page/..%2fpage.js"]
)
def test_there_is_nothing_else_under_the_prefix(client, target):
    assert client.get(target).status == 404


def test_the_prefix_is_not_in_the_tree(client):
    assert ".page" not in client.get("/").body.decode()
    assert client.ask("PROPFIND", "/.page/", Depth="1").status == 404


def test_what_the_index_loads_is_there(client):
    index = client.get("/", Accept="text/html").body.decode()
    loaded = re.findall(r'(?:src|href)="([^"]+)"', index)
    assert len(loaded) == 2
    assert all(client.get(target).status == 200 for target in loaded)


def test_nothing_that_an_agent_said_can_become_markup():
    script = (STATIC / "page.js").read_text()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(", script)
