"""GET of collections, by Accept; what is new in a chat."""

import json

import pytest

from agents9core.memory import MemoryChat, MemoryDirectory, MemoryFile
from agents9core.resolver import Resolver
from agents9core.tree.top import build_tree
from davserver.handlers.listing import FoundMessages, message_objects
from tests.e2e.machine import Machine

CHAT = "/active/claude/7/chat/"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


def rows(client, target):
    reply = client.get(target, Accept="application/json")
    assert reply.status == 200
    assert reply["Content-Type"] == "application/json"
    return json.loads(reply.body)


def ids(client, query):
    return [row["id"] for row in rows(client, CHAT + query)]


def test_text_is_one_name_a_line(client):
    reply = client.get("/", Accept="*/*")
    assert reply["Content-Type"] == "text/plain; charset=utf-8"
    assert reply.body.decode().splitlines() == ["version", "file.txt", "transcript", "active/", "names/"]


def test_text_encodes_what_a_terminal_would_obey(client):
    lines = client.get("/names/").body.decode().splitlines()
    assert "esc%1B[31m" not in lines
    assert "esc%1B%5B31m" in lines
    assert "tab%09here" in lines
    assert "ä€😀" in lines


def test_json_describes_a_directory(client):
    assert rows(client, "/active/")[0] == {
        "name": "claude",
        "type": "directory",
        "size": 0,
        "mtime": "2023-11-14T22:13:24.123Z",
        "href": "/active/claude/",
    }


def test_json_describes_a_file(client):
    assert rows(client, "/")[0] == {
        "name": "version",
        "type": "file",
        "size": 4,
        "mtime": "2023-11-14T22:13:20.123Z",
        "href": "/version",
    }


def test_json_describes_a_message(client):
    assert rows(client, CHAT)[1] == {
        "id": 1,
        "kind": "assistant",
        "name": "00000001-assistant",
        "type": "file",
        "size": 10,
        "mtime": "2023-11-14T22:13:21.123Z",
        "href": CHAT + "00000001-assistant",
    }


def test_every_name_survives_json_and_every_href_leads_to_it(client, tree):
    listed = rows(client, "/names/")
    assert [row["name"] for row in listed] == [row.name for row in tree.walk("names").members()]
    assert all(client.get(row["href"]).body == b"x" for row in listed)


def test_an_empty_directory_is_an_empty_array(client, tree):
    tree.add(MemoryDirectory("empty"))
    assert rows(client, "/empty/") == []
    assert client.get("/empty/").body == b""


@pytest.mark.parametrize("count", [255, 256, 257, 1000])
def test_slices_join_without_a_seam(client, tree, count):
    tree.add(MemoryDirectory("many", [MemoryFile(f"{number:05d}") for number in range(count)]))
    assert len(rows(client, "/many/")) == count
    assert len(client.get("/many/").body.splitlines()) == count


@pytest.mark.parametrize("accept", ["*/*", "application/json", BROWSER])
def test_a_listing_varies_by_accept_and_has_no_tag(client, accept):
    reply = client.get(CHAT, Accept=accept)
    assert reply["Vary"] == "Accept"
    assert reply["ETag"] is None
    assert reply["Last-Modified"] is None


def test_a_browser_gets_the_page(client):
    reply = client.get(CHAT, Accept=BROWSER)
    assert reply["Content-Type"] == "text/html; charset=utf-8"
    assert reply.body.startswith(b"<!doctype html>")


def test_a_collection_without_its_slash_is_answered_as_it_is(client):
    assert client.get("/active").body == b"claude/\n"
    assert rows(client, "/active")[0]["href"] == "/active/claude/"


def test_head_of_a_listing_keeps_the_connection(client):
    head = client.ask("HEAD", CHAT)
    assert (head.status, head.body) == (200, b"")
    assert head["Agents9-Transcript"] == "t0"
    assert client.get("/version").body == b"0.1\n"


def test_a_listing_too_large_is_507_in_every_form(client, tree):
    tree.add(MemoryChat("full", cap=0))
    tree.walk("full").say("user", b"x")
    for accept in ("*/*", "application/json"):
        refused = client.get("/full/", Accept=accept)
        assert (refused.status, refused.body) == (507, b"more than 0 messages\n")
        assert client.ask("HEAD", "/full/", Accept=accept).status == 507
    assert client.get("/full/00000000-user").status == 200


# -- what is new in a chat


def test_a_chat_names_its_transcript(client):
    assert client.get(CHAT)["Agents9-Transcript"] == "t0"
    assert client.get("/active/")["Agents9-Transcript"] is None


def test_after_gives_later_messages_only(client):
    assert ids(client, "?after=2") == [3, 4]
    assert ids(client, "?after=2&transcript=t0") == [3, 4]
    assert client.get(CHAT + "?after=3").body == b"00000004-user\n"


def test_after_the_last_message_there_is_nothing_yet(client, chat):
    assert ids(client, "?after=4&transcript=t0") == []
    chat.say("user", b"one more")
    assert ids(client, "?after=4&transcript=t0") == [5]


def test_after_takes_leading_zeros_as_names_have_them(client):
    assert ids(client, "?after=00000002") == [3, 4]
    assert ids(client, "?after=" + "0" * 5000 + "2") == [3, 4]
    assert ids(client, "?after=" + "0" * 5000) == [1, 2, 3, 4]


@pytest.mark.parametrize("after", ["", "x", "-1", "+1", "1.0", "0x1", "1%20", "%D9%A1", "1_0"])
def test_after_that_is_no_decimal_is_a_bad_request(client, after):
    assert client.get(f"{CHAT}?after={after}").status == 400


def test_after_given_twice_is_a_bad_request(client):
    assert client.get(f"{CHAT}?after=1&after=2").status == 400


@pytest.mark.parametrize("after", ["5", "99999999", "9" * 5000])
def test_an_id_past_the_end_is_gone(client, after):
    reply = client.get(f"{CHAT}?after={after}")
    assert reply.status == 410
    assert reply["Agents9-Transcript"] == "t0"


def test_another_transcript_is_gone(client, chat):
    chat.clear()
    reply = client.get(CHAT + "?after=0&transcript=t0")
    assert reply.status == 410
    assert reply["Agents9-Transcript"] == "t1"
    assert client.get(CHAT + "?transcript=t0").status == 410
    assert client.get(CHAT + "?after=0").status == 410
    assert rows(client, CHAT) == []


def test_queries_mean_nothing_on_other_directories_and_on_files(client):
    assert client.get("/active/?after=x&transcript=y").status == 200
    assert client.get("/version?after=x&q=y").body == b"0.1\n"
    assert client.get(CHAT + "?unknown=%ff").status == 200


def test_a_call_and_its_result_name_their_tool(tmp_path):
    machine = Machine(tmp_path)
    for number, name in enumerate(("Agent", "mcp__a b", "Bash")):
        call = {"type": "tool_use", "id": f"t{number}", "name": name, "input": {}}
        machine.says("assistant", [call])
        machine.says("user", [{"type": "tool_result", "tool_use_id": f"t{number}", "content": "done needle"}])
    root = build_tree(Resolver(str(machine.proc)))
    chat = root.walk("active").walk("claude").walk("601").walk("chat")
    rows = chat.members()
    listed = [json.loads(each) for each in message_objects(rows.columns(0, len(rows)), "/chat/")]
    assert [(each["kind"], each.get("tool")) for each in listed] == [
        ("user", None),
        ("tool-call", "Agent"),
        ("tool-result", "Agent"),
        ("mcp__a-b", "mcp__a b"),
        ("mcp__a-b-result", "mcp__a b"),
        ("bash", "Bash"),
        ("bash-result", "Bash"),
    ]
    found = FoundMessages(rows, [rows[2], rows[6]])
    tools = [json.loads(each)["tool"] for each in message_objects(found.columns(0, 2), "")]
    assert tools == ["Agent", "Bash"]
