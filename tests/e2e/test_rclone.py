"""rclone's webdav backend, which lists with an empty PROPFIND body and reads with ranges."""

import json

import pytest

pytestmark = pytest.mark.e2e

AGENT = "active/claude/345104"


@pytest.fixture
def rclone(http_door, run, tmp_path):
    def call(command, path="", *arguments):
        remote = f":webdav,url='{http_door.url}':{path}"
        said = run("rclone", "--config", str(tmp_path / "none"), command, remote, *arguments)
        assert said.returncode == 0, said.stderr
        return said.stdout

    return call


def test_directories_are_listed_with_sizes_and_times(rclone):
    rows = {row["Name"]: row for row in json.loads(rclone("lsjson", AGENT))}
    assert set(rows) == {"title", "transcript", "chat"}
    assert rows["chat"]["IsDir"]
    assert rows["title"]["Size"] == 7
    assert rows["title"]["ModTime"].startswith("2023-11-14T22:13:20")


def test_the_whole_tree_is_walked(rclone):
    assert rclone("lsf", "", "--recursive", "--files-only").split("\n")[:-1] == [
        "long",
        "names/a b & (c) ä?#%.txt",
        f"{AGENT}/title",
        f"{AGENT}/transcript",
        f"{AGENT}/chat/00000000-user",
        f"{AGENT}/chat/00000001-assistant",
    ]


def test_files_are_read_whole_and_in_part(rclone, http_door):
    content = http_door.transcript.content().decode()
    assert rclone("cat", f"{AGENT}/transcript") == content
    assert rclone("cat", f"{AGENT}/transcript", "--offset", "16", "--count", "16") == content[16:32]
    assert rclone("cat", "names/a b & (c) ä?#%.txt") == "odd\n"


def test_a_copy_is_the_same_and_only_what_changed_is_copied_again(rclone, http_door, tmp_path):
    copy = tmp_path / "copy"
    rclone("copy", "", str(copy))
    assert (copy / "long").read_bytes() == http_door.root.walk("long").content()
    rclone("check", "", str(copy), "--download")
    http_door.transcript.append(b"{}\n")
    http_door.chat.say("user", b"more\n", 1_700_000_005_000_000_000)
    rclone("copy", "", str(copy))
    assert (copy / AGENT / "transcript").read_bytes() == http_door.transcript.content()
    assert (copy / AGENT / "chat" / "00000002-user").read_bytes() == b"more\n"


def test_lsl_shows_sizes_times_and_paths(rclone):
    rows = sorted(line.split(maxsplit=3) for line in rclone("lsl", f"{AGENT}/chat").splitlines())
    assert [(row[0], row[3]) for row in rows] == [("13", "00000001-assistant"), ("29", "00000000-user")]
    assert rows[1][1:3] == ["2023-11-14", "22:13:20.000000000"]
