"""Python's WebDAV clients, as a script would use them: webdav4 (and its fsspec) and webdavclient3."""

import pytest
from webdav3.client import Client as Client3
from webdav4.client import Client as Client4
from webdav4.client import HTTPError, ResourceNotFound
from webdav4.fsspec import WebdavFileSystem

pytestmark = pytest.mark.e2e

AGENT = "active/claude/345104"
ODD = "names/a b & (c) ä?#%.txt"


@pytest.fixture
def webdav4(http_door):
    client = Client4(http_door.url)
    yield client
    client.http.close()


@pytest.fixture
def webdav3(http_door):
    return Client3({"webdav_hostname": http_door.url})


def test_webdav4_lists_and_describes(webdav4, http_door):
    assert webdav4.ls(AGENT, detail=False) == [f"{AGENT}/{name}" for name in ("title", "transcript", "chat")]
    [first, second] = webdav4.ls(f"{AGENT}/chat")
    row = http_door.chat.members()[0]
    assert first["name"] == f"{AGENT}/chat/{row.name}"
    assert (first["type"], first["content_length"]) == ("file", row.stat.length)
    assert first["etag"].strip('"') == row.stat.etag
    assert second["modified"] > first["modified"]
    assert webdav4.isfile("long")
    assert not webdav4.exists("missing")


def test_webdav4_cannot_ask_about_a_directory_itself(webdav4):
    """It sends no Depth, which means all that is below (RFC 4918 section 9.1)."""
    with pytest.raises(HTTPError, match="403"):
        webdav4.isdir("active")


def test_webdav4_looks_at_one_file(webdav4):
    """It sends no Depth here either; a file has nothing below it."""
    assert webdav4.info("long")["content_length"] == 2097152
    assert webdav4.content_type("long") == "text/plain; charset=utf-8"


def test_webdav4_downloads(webdav4, http_door, tmp_path):
    webdav4.download_file("long", tmp_path / "long")
    assert (tmp_path / "long").read_bytes() == http_door.root.walk("long").content()
    with webdav4.open(f"{AGENT}/chat/00000001-assistant") as file:
        assert file.read() == "Let me look.\n"
    with pytest.raises(ResourceNotFound):
        webdav4.download_file("missing", tmp_path / "missing")


def test_webdav4_takes_an_odd_name(webdav4):
    [listed] = webdav4.ls("names", detail=False)
    assert listed == ODD


def test_fsspec_finds_and_reads(http_door):
    files = WebdavFileSystem(http_door.url)
    assert files.cat_file(f"{AGENT}/title") == b"Fix it\n"
    assert f"{AGENT}/chat/00000000-user" in files.find("active")
    with files.open("long") as file:
        file.seek(1000)
        assert file.read(10) == http_door.root.walk("long").content()[1000:1010]
    files.client.http.close()


def test_webdavclient3_lists_and_describes(webdav3):
    assert sorted(webdav3.list(f"{AGENT}/chat")) == ["00000000-user", "00000001-assistant"]
    assert webdav3.info("long")["size"] == "2097152"
    assert webdav3.check(f"{AGENT}/title")
    assert not webdav3.check("missing")
    assert webdav3.is_dir("active/")


def test_webdavclient3_downloads(webdav3, http_door, tmp_path):
    webdav3.download_sync("long", str(tmp_path / "long"))
    assert (tmp_path / "long").read_bytes() == http_door.root.walk("long").content()
    webdav3.download_sync(f"{AGENT}/chat/", str(tmp_path / "chat"))
    assert (tmp_path / "chat" / "00000001-assistant").read_bytes() == b"Let me look.\n"
