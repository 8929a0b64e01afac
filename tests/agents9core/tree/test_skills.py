"""The skills of a harness, and which links are followed to them."""

import pytest

from agents9core.errors import NotFound
from agents9core.identity import PathNumbers
from agents9core.tree.skills import SkillsDirectory


@pytest.fixture
def home(tmp_path):
    put(tmp_path / "home" / "skills" / "review", "own")
    return tmp_path / "home"


@pytest.fixture
def skills(home):
    return skills_of(home)


def put(directory, text, name="SKILL.md"):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(text)
    return directory


def skills_of(*homes, closed=()):
    return SkillsDirectory(
        "claude", (("skills",),), lambda: list(map(str, homes)), lambda: list(map(str, closed)), PathNumbers()
    )


def names(directory):
    return [row.name for row in directory.members()]


def text(skills, name, file="SKILL.md"):
    return skills.walk(name).walk(file).open().read(0, 100)


def test_a_skill_is_a_directory_with_a_skill_file(home, skills):
    put(home / "skills" / "review" / "scripts", "run", "run.sh")
    put(home / "skills" / "notes", "no skill", "README.md")
    assert names(skills) == ["review"]
    assert text(skills, "review") == b"own"
    assert names(skills.walk("review")) == ["SKILL.md", "scripts"]


def test_a_skill_in_a_category_has_its_own_name(home, skills):
    put(home / "skills" / "office" / "mail", "mail")
    assert names(skills) == ["mail", "review"]


def test_a_linked_skill_is_followed(home, skills, tmp_path):
    (home / "skills" / "linked").symlink_to(put(tmp_path / "elsewhere", "linked"))
    assert text(skills, "linked") == b"linked"


def test_a_link_within_a_skill_is_not(home, skills, tmp_path):
    (home / "skills" / "review" / "more").symlink_to(put(tmp_path / "elsewhere", "secret"))
    assert names(skills.walk("review")) == ["SKILL.md"]


def test_a_link_into_a_transcript_store_is_not_followed(home, tmp_path):
    store = tmp_path / "home" / "projects"
    (home / "skills" / "sly").symlink_to(put(store / "-srv", "transcript"))
    assert names(skills_of(home, closed=[store])) == ["review"]


def test_a_link_around_a_transcript_store_is_not_followed(home, tmp_path):
    put(home, "the home itself")
    (home / "skills" / "sly").symlink_to(home)
    assert names(skills_of(home, closed=[home / "projects"])) == ["review"]


def test_a_skills_directory_that_leads_into_a_store_shows_nothing(tmp_path):
    store = tmp_path / "home" / "projects"
    put(store / "-srv" / "evil", "transcript")
    (tmp_path / "home" / "skills").symlink_to(store / "-srv")
    assert names(skills_of(tmp_path / "home", closed=[store])) == []


def test_a_skill_that_leads_elsewhere_by_now_is_gone(home, tmp_path):
    link = home / "skills" / "linked"
    link.symlink_to(put(tmp_path / "elsewhere", "linked"))
    held = skills_of(home, closed=[home / "projects"]).walk("linked")
    put(home / "projects", "transcript")
    link.unlink()
    link.symlink_to(home / "projects")
    assert names(held) == []


def test_another_user_s_directory_is_not_followed(home, skills, tmp_path, monkeypatch):
    (home / "skills" / "foreign").symlink_to(put(tmp_path / "elsewhere", "foreign"))
    monkeypatch.setattr("agents9core.tree.skills.os.getuid", lambda: 12345)
    assert names(skills) == ["review"]


@pytest.mark.parametrize("target", ["missing", "loop"])
def test_a_link_that_leads_nowhere_is_nothing(home, skills, target):
    link = home / "skills" / "loop"
    link.symlink_to(home / "skills" / target)
    assert names(skills) == ["review"]


def test_of_two_skills_of_one_name_the_first_home_s_counts(home, tmp_path):
    put(tmp_path / "other" / "skills" / "review", "other's")
    put(tmp_path / "other" / "skills" / "extra", "extra")
    skills = skills_of(home, tmp_path / "other")
    assert names(skills) == ["extra", "review"]
    assert text(skills, "review") == b"own"


@pytest.mark.parametrize("name", ["..", ".", "", "review/SKILL.md", "other"])
def test_what_is_no_skill_is_not_found(skills, name):
    with pytest.raises(NotFound):
        skills.walk(name)


@pytest.mark.parametrize("name", [".env", "id_ed25519", "server.pem", ".netrc", "token.json"])
def test_a_secret_in_a_skill_is_not_there(home, skills, name):
    put(home / "skills" / "review", "TOKEN=1", name)
    assert names(skills.walk("review")) == ["SKILL.md"]


@pytest.mark.parametrize("link", ["skills/linked", "skills", "skills/office"])
def test_no_link_is_followed_in_a_home_that_a_process_names(home, tmp_path, link):
    put(tmp_path / "elsewhere" / "linked", "secret")
    place = tmp_path / "other" / link
    place.parent.mkdir(parents=True)
    place.symlink_to(tmp_path / "elsewhere" / ("linked" if link.endswith("linked") else ""))
    assert names(skills_of(home, tmp_path / "other")) == ["review"]


def test_a_skill_of_a_named_home_that_becomes_a_link_shows_nothing(home, tmp_path):
    skill = put(tmp_path / "other" / "skills" / "sly", "own")
    held = skills_of(home, tmp_path / "other").walk("sly")
    skill.rename(tmp_path / "before")
    skill.symlink_to(put(tmp_path / "elsewhere", "secret", "notes.md"))
    assert names(held) == []
    with pytest.raises(NotFound):
        held.walk("notes.md")


@pytest.mark.parametrize("secret", [".ssh", ".gnupg", "keyrings"])
def test_a_linked_skill_is_no_directory_of_secrets(home, skills, tmp_path, secret):
    (home / "skills" / "sly").symlink_to(put(tmp_path / secret, "a file beside keys"))
    assert names(skills) == ["review"]
