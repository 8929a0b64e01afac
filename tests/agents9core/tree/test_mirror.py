"""The mirrors show a harness's transcripts, and never its secrets."""

import os
import stat

import pytest

from agents9core.errors import Gone, NotFound
from agents9core.files.root import Root
from agents9core.identity import PathNumbers
from agents9core.tree.mirror import MirrorDirectory, MirroredStore

SESSION = "projects/-srv/0d0f6c1e.jsonl"


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "home"
    put(home, SESSION, "{}\n")
    return home


@pytest.fixture
def mirror(home):
    return mirror_of(home)


def put(home, path, text=""):
    place = home / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place


def mirror_of(*homes, allowed=(("projects",),)):
    return MirrorDirectory(
        "claude", MirroredStore("claude", allowed, lambda: [str(home) for home in homes], PathNumbers())
    )


def walk(node, path):
    for name in path.split("/"):
        node = node.walk(name)
    return node


def names(directory):
    return [row.name for row in directory.members()]


def test_a_transcript_is_there_byte_for_byte(mirror):
    assert walk(mirror, SESSION).open().read(0, 100) == b"{}\n"


BESIDE = "auth.json .env config.toml state.db .credentials.json sessions/77.json history.jsonl"


@pytest.mark.parametrize("path", BESIDE.split())
def test_what_is_beside_the_store_is_not_there(home, mirror, path):
    put(home, path, "secret")
    assert names(mirror) == ["projects"]
    with pytest.raises(NotFound):
        walk(mirror, path)


@pytest.mark.parametrize(
    "name",
    ["77.abc.key", "auth.json", ".env", ".env.local", "config.toml", "agent.db", "state.db-wal", "x.sqlite",
     ".credentials.json", "AUTH.JSON", "a\n.key",
     "id_rsa", "id_ed25519", "id_ecdsa_sk", "id_rsa.bak", "server.pem", "x.p12", "x.pfx", "x.kdbx",
     ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".git-credentials", "google_credentials.json",
     "secrets.yaml", "secret.json", ".secrets", "client_secret_1.json", "my-service-account.json",
     "token.json", ".token", "access_token", "github-api-token.txt", "refresh_tokens.json"],
)  # fmt: skip
def test_a_secret_within_the_store_is_not_there(home, mirror, name):
    put(home, f"projects/-srv/{name}", "secret")
    assert names(walk(mirror, "projects/-srv")) == ["0d0f6c1e.jsonl"]
    with pytest.raises(NotFound):
        walk(mirror, f"projects/-srv/{name}")


@pytest.mark.parametrize(
    "name",
    ["id_rsa.pub", "id_map.json", "keys.md", "secrets.md", "secretary.json", "design-tokens.json",
     "tokens.json", "tokenizer.json", "credentialed.txt", "npmrc.md"],
)  # fmt: skip
def test_what_only_sounds_like_a_secret_is_there(home, mirror, name):
    put(home, f"projects/-srv/{name}", "known")
    assert walk(mirror, f"projects/-srv/{name}").open().read(0, 9) == b"known"


@pytest.mark.parametrize("name", [".ssh", ".gnupg", ".aws", ".kube"])
def test_a_directory_of_secrets_is_not_there(home, mirror, name):
    put(home, f"projects/-srv/{name}/known", "secret")
    assert names(walk(mirror, "projects/-srv")) == ["0d0f6c1e.jsonl"]
    with pytest.raises(NotFound):
        walk(mirror, f"projects/-srv/{name}/known")


def test_a_directory_may_have_almost_any_name(home, mirror):
    put(home, "projects/-srv-credentials.key/x.jsonl")
    assert names(walk(mirror, "projects")) == ["-srv", "-srv-credentials.key"]


def test_a_store_below_another_directory_shows_the_way_to_it_only(home):
    put(home, "agent/sessions/x.jsonl", "{}\n")
    put(home, "agent/notes.txt", "private")
    mirror = mirror_of(home, allowed=(("agent", "sessions"),))
    assert names(walk(mirror, "agent")) == ["sessions"]
    assert names(walk(mirror, "agent/sessions")) == ["x.jsonl"]


def test_nothing_is_mirrored_where_nothing_is_allowed(home):
    assert names(mirror_of(home, allowed=())) == []


def test_a_home_that_is_not_there_is_empty(tmp_path):
    mirror = mirror_of(tmp_path / "missing")
    assert names(mirror) == []
    assert mirror.stat().is_dir


KINDS = ["link to a file", "link to a directory", "fifo", "loop", "socket"] + ["device"] * (os.getuid() == 0)


@pytest.mark.parametrize("kind", KINDS)
def test_only_plain_files_and_directories_are_there(home, mirror, tmp_path, kind):
    odd = home / "projects" / "-srv" / "odd"
    secret = put(tmp_path, "secret/file", "secret")
    if kind == "fifo":
        os.mkfifo(odd)
    elif kind == "socket":
        os.mknod(odd, stat.S_IFSOCK | 0o600)
    elif kind == "device":
        os.mknod(odd, stat.S_IFCHR | 0o600, os.makedev(1, 5))  # /dev/zero
    else:
        odd.symlink_to({"link to a file": secret, "link to a directory": secret.parent, "loop": odd}[kind])
    assert names(walk(mirror, "projects/-srv")) == ["0d0f6c1e.jsonl"]
    with pytest.raises(NotFound):
        walk(mirror, "projects/-srv/odd")


@pytest.mark.parametrize("name", ["..", ".", "", "../projects", "projects/-srv", "a\0b", "x" * 5000])
def test_no_name_leads_outside(mirror, name):
    with pytest.raises(NotFound):
        mirror.walk(name)


def test_homes_are_merged_by_name(home, tmp_path):
    other = tmp_path / "other"
    put(other, "projects/-srv/second.jsonl", "2\n")
    put(other, SESSION, "not this one\n")
    mirror = mirror_of(home, other)
    assert names(walk(mirror, "projects/-srv")) == ["0d0f6c1e.jsonl", "second.jsonl"]
    assert walk(mirror, SESSION).open().read(0, 100) == b"{}\n"


def test_a_file_that_was_replaced_is_gone(home, mirror):
    file = walk(mirror, SESSION)
    reader = file.open()
    put(home, "projects/-srv/new", "other").rename(home / SESSION)
    with pytest.raises(Gone):
        file.stat()
    with pytest.raises(Gone):
        reader.read(0, 1)


def test_a_file_that_grows_is_the_same_one(home, mirror):
    file = walk(mirror, SESSION)
    before = file.stat()
    with (home / SESSION).open("a") as out:
        out.write("{}\n")
    after = file.stat()
    assert (after.path, after.length) == (before.path, 6)
    assert after.version != before.version


def test_a_file_cut_short_while_it_is_read_is_gone(home, mirror):
    reader = walk(mirror, SESSION).open()
    os.truncate(home / SESSION, 1)
    with pytest.raises(Gone):
        reader.read(2, 1)


def test_a_name_that_is_not_utf8_has_one_spelling(home, mirror):
    os.close(os.open(os.fsencode(home) + b"/projects/-srv/a\xff%", os.O_CREAT))
    assert names(walk(mirror, "projects/-srv"))[1:] == ["a%FF%25"]
    assert walk(mirror, "projects/-srv/a%FF%25").stat().length == 0


def test_a_store_that_is_itself_a_link_is_followed(tmp_path):
    put(tmp_path / "elsewhere", "-srv/x.jsonl", "{}\n")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "projects").symlink_to(tmp_path / "elsewhere")
    mirror = mirror_of(tmp_path / "home")
    assert names(mirror) == ["projects"]
    assert walk(mirror, "projects/-srv/x.jsonl").open().read(0, 9) == b"{}\n"


def test_a_name_that_looks_like_an_escaped_one_stays_readable(home, mirror):
    put(home, "projects/-srv/%FF.jsonl", "literal")
    assert walk(mirror, "projects/-srv/%FF.jsonl").open().read(0, 9) == b"literal"


def test_a_percent_sign_in_a_name_stays(home, mirror):
    put(home, "projects/-srv/a%41", "literal")
    assert walk(mirror, "projects/-srv/a%41").open().read(0, 9) == b"literal"


def test_listings_and_members_agree(mirror):
    for row in mirror.members():
        assert mirror.walk(row.name).stat() == row.stat


@pytest.mark.parametrize("count", [10, 1000])
def test_a_walk_looks_at_the_one_name_that_it_is_asked_for(home, mirror, monkeypatch, count):
    place = home / "projects" / "many"
    place.mkdir(parents=True)
    for number in range(count):
        (place / f"{number}.jsonl").write_text("{}\n")
    directory = walk(mirror, "projects/many")
    monkeypatch.setattr(Root, "entries", lambda *_: pytest.fail("a walk lists nothing"))
    assert directory.walk("7.jsonl").stat().length == 3
    with pytest.raises(NotFound):
        directory.walk("missing.jsonl")
