import pytest
from hypothesis import given
from hypothesis import strategies as st

from davserver.http.response import HTTPError
from davserver.http.target import parse_target, quoted, split_absolute


@pytest.mark.parametrize(
    ("raw", "names", "slash", "query"),
    [
        ("/", (), True, ""),
        ("/a", ("a",), False, ""),
        ("/a/b/", ("a", "b"), True, ""),
        ("/a?after=1", ("a",), False, "after=1"),
        ("/a%3Fb?c?d", ("a?b",), False, "c?d"),
        ("/a%20b", ("a b",), False, ""),
        ("/%C3%A4", ("ä",), False, ""),
        ("/%2541", ("%41",), False, ""),
        ("/a+b;c=d,e", ("a+b;c=d,e",), False, ""),
        ("/...", ("...",), False, ""),
    ],
)
def test_a_target_is_split_and_then_decoded_once(raw, names, slash, query):
    target = parse_target(raw)
    assert (target.names, target.slash, target.query) == (names, slash, query)


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        ("/./a", 404),
        ("/../etc/passwd", 404),
        ("/%2e%2e/etc/passwd", 404),
        ("/a/%2e/b", 404),
        ("/a%2fb", 404),
        ("/a%2Fb", 404),
        ("/%00", 400),
        ("/\0", 400),
        ("/a%00b", 400),
        ("/%ff", 400),
        ("/%ED%A0%80", 400),
        ("/%zz", 400),
        ("/%", 400),
        ("/a%2", 400),
        ("a", 400),
        ("", 400),
        ("*", 400),
        ("/a#b", 400),
        ("/\xe4", 400),
    ],
)
def test_what_names_nothing_is_refused(raw, status):
    with pytest.raises(HTTPError) as refused:
        parse_target(raw)
    assert refused.value.answer.status == status


@given(st.text(max_size=300).map(lambda text: "/" + text))
def test_any_text_is_a_target_or_refused_and_never_leads_up(raw):
    try:
        names = parse_target(raw).names
    except HTTPError:
        return
    assert not {"", ".", ".."} & set(names)
    assert not any("/" in name or "\0" in name for name in names)


@given(
    st.lists(
        st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1), max_size=4
    )
)
def test_quoted_names_come_back(names):
    if {".", ".."} & set(names):
        return
    assert parse_target("".join("/" + quoted(name) for name in names) or "/").names == tuple(names)


def test_href_keeps_sub_delims_raw():
    assert parse_target("/a%20b/%282%29!").href == "/a%20b/(2)!"


@pytest.mark.parametrize(
    ("raw", "authority", "rest"),
    [
        ("http://h:80/a?b", "h:80", "/a?b"),
        ("HTTP://h", "h", "/"),
        ("https://h?q", "h", "/?q"),
        ("/http://h/", None, "/http://h/"),
        ("//h/a", None, "//h/a"),
    ],
)
def test_absolute_form_gives_its_authority(raw, authority, rest):
    assert split_absolute(raw) == (authority, rest)


@pytest.mark.parametrize("raw", ["//a//b/", "/a///b//", "///a/b/"])
def test_doubled_slashes_mean_one(raw):
    assert parse_target(raw) == parse_target("/a/b/")
