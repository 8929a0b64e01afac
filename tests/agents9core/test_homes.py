"""Homes are remembered as the directories that they were, and planted ones drive out no real one."""

import os

import pytest

from agents9core.homes import MOST, Homes, crowding


@pytest.fixture
def homes():
    return Homes()


def make(path):
    path.mkdir(parents=True)
    return str(path)


def test_a_home_is_remembered_while_it_is_the_same_directory(homes, tmp_path):
    home = make(tmp_path / "home")
    homes.remember([home])
    assert homes.known() == [home]


@pytest.mark.parametrize("turned", ["replaced", "a link", "gone", "a file"])
def test_a_home_that_is_another_directory_is_forgotten(homes, tmp_path, turned):
    home = make(tmp_path / "home")
    homes.remember([home])
    os.rename(home, tmp_path / "before")
    if turned == "replaced":
        make(tmp_path / "home")
    elif turned == "a link":
        (tmp_path / "home").symlink_to(make(tmp_path / "elsewhere"))
    elif turned == "a file":
        (tmp_path / "home").write_text("")
    assert homes.known() == []
    os.path.lexists(home) and os.rename(home, tmp_path / "after")
    os.rename(tmp_path / "before", home)
    assert homes.known() == []


def test_a_link_to_a_home_that_is_turned_is_forgotten(homes, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(make(tmp_path / "one"))
    homes.remember([str(link)])
    assert homes.known() == [str(link)]
    link.unlink()
    link.symlink_to(make(tmp_path / "two"))
    assert homes.known() == []


@pytest.mark.parametrize("path", ["missing", "file", "nul\0"])
def test_what_is_no_directory_is_no_home(homes, tmp_path, path):
    (tmp_path / "file").write_text("")
    homes.remember([str(tmp_path / path)])
    assert homes.known() == []


@pytest.mark.parametrize("below", ["{}", "x/{}", "{}/x", "{}/x/{}", "x/y/z/{}"])
def test_planted_homes_drive_out_their_own(homes, tmp_path, below):
    real = [make(tmp_path / "user" / f".claude-{name}") for name in ("work", "play")]
    real += [make(tmp_path / "data" / "agents" / "home"), make(tmp_path / "user" / "proj" / ".claude")]
    homes.remember(real)
    for number in range(3 * MOST):
        homes.remember([make(tmp_path / "user" / "planted" / below.format(number, number))])
    assert set(real) <= set(homes.known())
    assert len(homes.known()) == MOST


def test_a_real_home_that_comes_after_planted_ones_is_remembered(homes, tmp_path):
    for number in range(3 * MOST):
        homes.remember([make(tmp_path / "planted" / str(number))])
    real = make(tmp_path / "user" / ".claude")
    homes.remember([real])
    assert real in homes.known()


@pytest.mark.parametrize(
    ("homes", "goes"),
    [
        (["/a"], "/a"),
        (["/a/1", "/b/1", "/b/2"], "/b/1"),
        (["/a/1", "/a/1/2", "/a/1/2/3", "/b"], "/a/1/2"),
        (["/u/x", "/u/p/1", "/u/p/2", "/t/1", "/t/2"], "/u/p/1"),
    ],
)
def test_the_crowd_loses_its_first(homes, goes):
    assert crowding(homes) == goes
