"""curl, as scripts use it."""

import json
import pwd

import pytest

pytestmark = pytest.mark.e2e

CHAT = "/active/claude/345104/chat/"


def test_a_message_is_its_text(http_door, run):
    said = run("curl", "-sf", http_door.url + CHAT + "00000000-user")
    assert said.stdout == "Is it the naïve cache? 🤔\n"


def test_a_directory_is_its_names(http_door, run):
    assert run("curl", "-sf", http_door.url + CHAT).stdout == "00000000-user\n00000001-assistant\n"
    assert run("curl", "-sf", http_door.url).stdout == "active/\nlong\nnames/\n"


def test_a_script_follows_a_chat(http_door, run):
    listing = run("curl", "-sfi", "-H", "Accept: application/json", http_door.url + CHAT).stdout
    transcript = listing.partition("Agents9-Transcript: ")[2].partition("\n")[0].strip()
    last = json.loads(listing.partition("[")[1] + listing.partition("[")[2])[-1]["id"]
    http_door.chat.say("bash", b"bash\n{}\n")
    follow = f"{http_door.url}{CHAT}?after={last}&transcript={transcript}"
    later = json.loads(run("curl", "-sf", "-H", "Accept: application/json", follow).stdout)
    assert [row["name"] for row in later] == ["00000002-bash"]
    http_door.chat.clear()
    assert run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", follow).stdout == "410"


def test_a_download_resumes(http_door, run, tmp_path):
    whole = http_door.root.walk("long").content()
    part = tmp_path / "part"
    part.write_bytes(whole[:1_000_000])
    assert run("curl", "-sf", "-C", "-", "-o", str(part), http_door.url + "/long").returncode == 0
    assert part.read_bytes() == whole


def test_a_finished_download_has_nothing_to_resume(http_door, run, tmp_path):
    whole = http_door.root.walk("long").content()
    part = tmp_path / "part"
    part.write_bytes(whole)
    code = run("curl", "-s", "-C", "-", "-o", str(part), "-w", "%{http_code}", http_door.url + "/long").stdout
    assert code == "416"
    assert part.read_bytes() == whole


def test_a_copy_has_the_time_of_the_file(http_door, run, tmp_path):
    copy = tmp_path / "copy"
    run("curl", "-sfR", "-o", str(copy), http_door.url + "/long")
    assert copy.stat().st_mtime == 1_700_000_000


def test_the_head_of_a_file_is_all_of_it_but_the_body(http_door, run):
    said = run("curl", "-sfI", http_door.url + "/long").stdout.lower()
    for line in (
        "200 ok",
        f"content-length: {2 << 20}",
        'etag: "',
        "last-modified: tue, 14 nov 2023 22:13:20 gmt",
    ):
        assert line in said


def test_a_file_is_fetched_only_if_it_is_newer_than_the_copy(http_door, run, tmp_path):
    copy = tmp_path / "copy"
    url = http_door.url + "/active/claude/345104/transcript"
    fetch = ["-sf", "-R", "-z", str(copy), "-o", str(copy), "-w", "%{http_code}", url]
    assert run("curl", *fetch[:2], "-o", str(copy), url).returncode == 0
    assert run("curl", *fetch).stdout == "304"
    assert copy.read_bytes() == http_door.transcript.content()
    http_door.transcript.append(b"{}\n")
    http_door.transcript.mtime_ns += 2_000_000_000
    assert run("curl", *fetch).stdout == "200"
    assert copy.read_bytes() == http_door.transcript.content()


def test_an_unchanged_file_is_not_sent_again(http_door, run, tmp_path):
    tag = tmp_path / "etag"
    url = http_door.url + "/active/claude/345104/transcript"
    fetch = [
        "-sf",
        "--etag-save",
        str(tag),
        "--etag-compare",
        str(tag),
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        url,
    ]
    assert run("curl", *fetch).stdout == "200"
    assert run("curl", *fetch).stdout == "304"
    http_door.transcript.append(b"{}\n")
    assert run("curl", *fetch).stdout == "200"


def test_one_connection_serves_many_requests(http_door, run):
    urls = [http_door.url + path for path in ("/long", "/", CHAT, "/nothing", "/long")]
    said = run("curl", "-sv", *[part for url in urls for part in ("-o", "/dev/null", url)])
    assert said.stderr.count("Connected to") == 1


def test_uploads_are_refused_before_they_are_sent(http_door, run, tmp_path):
    (tmp_path / "new").write_bytes(b"x" * 3_000_000)
    said = run("curl", "-s", "-T", str(tmp_path / "new"), "-w", "%{http_code}", http_door.url + "/new")
    assert said.stdout.endswith("405")


def test_a_path_upwards_leads_nowhere(http_door, run):
    for path in ("/../etc/passwd", "/%2e%2e/etc/passwd", "/active/..%2f..%2fetc/passwd"):
        said = run("curl", "-s", "--path-as-is", "-w", "%{http_code}", http_door.url + path)
        assert said.stdout.endswith("404")


def test_a_slow_reader_gets_everything(http_door, run):
    said = run(
        "curl",
        "-sf",
        "--limit-rate",
        "2M",
        "-w",
        "%{size_download}",
        "-o",
        "/dev/null",
        http_door.url + "/long",
    )
    assert said.stdout == str(2 << 20)


def test_another_user_gets_nothing(http_door, run):
    user = pwd.getpwnam("nobody")
    become = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": "/"}
    said = run("curl", "-s", "-w", "%{http_code}", http_door.url + "/long", **become)
    assert said.stdout.endswith("403")
