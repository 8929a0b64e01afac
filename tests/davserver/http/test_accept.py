import pytest
from hypothesis import given
from hypothesis import strategies as st

from davserver.http.accept import preferred

TEXT, JSON, HTML = OFFERS = ("text/plain", "application/json", "text/html")
CHROMIUM = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (None, TEXT),
        ("", TEXT),
        ("*/*", TEXT),
        (CHROMIUM, HTML),
        ("application/json", JSON),
        ("application/json, text/plain, */*", JSON),
        ("text/plain, application/json", TEXT),
        ("text/html, application/json", HTML),
        ("text/*", TEXT),
        ("text/*;q=0.5, application/json;q=0.4", TEXT),
        ("text/html;q=0.2, application/json;q=0.9", JSON),
        ("text/html;q=0, */*", TEXT),
        ("text/plain;q=0, */*", JSON),
        ("*/*;q=0.1, application/json", JSON),
        ("APPLICATION/JSON", JSON),
        ("text/html;level=1;q=0.7, application/json;q=0.8", JSON),
        ("application/json;q=0.1, text/html; q=0.5", HTML),
        ("text/*, text/plain;q=0", HTML),
        ("application/json;q=2", JSON),
        ("image/png", TEXT),
        ("garbage", TEXT),
        (";q=1, application/json", JSON),
        ("application/json;q=0", TEXT),
    ],
)
def test_the_form_that_weighs_most_is_chosen(accept, form):
    assert preferred(accept, OFFERS) == form


@given(st.text(alphabet="texhml/*;q=0.1,application json", max_size=60))
def test_any_header_gives_some_form(accept):
    assert preferred(accept, OFFERS) in OFFERS
