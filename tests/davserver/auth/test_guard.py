import logging

import pytest

from davserver.auth.guard import Guard
from davserver.http.environ import CONTESTED, PEER_ADMITTED
from davserver.http.response import HTTPError

GUARD = Guard(["agents.example", "192.0.2.7", "2001:DB8::1"])


def check(authority=None, admitted=True, protocol="HTTP/1.1", **headers):
    environ = {"SERVER_PROTOCOL": protocol, "SERVER_NAME": "2001:db8::9", PEER_ADMITTED: admitted}
    environ.update((f"HTTP_{name}", value) for name, value in headers.items())
    GUARD.check(environ, authority)


def refusal(**asked):
    with pytest.raises(HTTPError) as refused:
        check(**asked)
    return refused.value.answer


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:8564",
        "LOCALHOST",
        "localhost.",
        "127.0.0.1:1",
        "[::1]",
        "[::1]:8564",
        "agents.example",
        "Agents.Example:443",
        "192.0.2.7",
        "[2001:db8::1]:9",
        "[2001:db8::9]",
        "localhost:",
    ],
)
def test_our_own_names_pass_on_any_port(host):
    check(HOST=host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "localhost.evil.example",
        "evil.example:localhost",
        "localhost@evil.example",
        "localhost:8564:1",
        "localhost/",
        "::1",
        "[::2]",
        "127.0.0.1.nip.io",
        "localhost, evil.example",
        "..",
    ],
)
def test_another_name_is_misdirected(host):
    assert refusal(HOST=host).status == 421


def test_the_authority_of_an_absolute_target_counts_too():
    assert refusal(authority="evil.example", HOST="localhost").status == 421
    assert refusal(authority="localhost", HOST="evil.example").status == 421
    check(authority="localhost", HOST="localhost")


def test_http_1_1_needs_a_host_and_1_0_does_not():
    assert refusal().status == 400
    check(protocol="HTTP/1.0")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:3000", "localhost:8564x", ""]
)
def test_another_origin_is_refused(origin):
    assert refusal(HOST="localhost:8564", ORIGIN=origin).status == 403


def test_our_own_page_may_ask():
    check(HOST="localhost:8564", ORIGIN="http://localhost:8564", SEC_FETCH_SITE="same-origin")


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "garbage"])
def test_requests_that_another_site_causes_are_refused(site):
    assert refusal(HOST="localhost", SEC_FETCH_SITE=site).status == 403


def test_an_origin_without_a_host_is_refused():
    assert refusal(protocol="HTTP/1.0", ORIGIN="null").status == 403
    assert refusal(protocol="HTTP/1.0", ORIGIN="http://").status == 403


def test_a_name_that_another_server_shares_is_misdirected():
    environ = {"SERVER_PROTOCOL": "HTTP/1.1", "SERVER_NAME": "127.0.0.1", PEER_ADMITTED: True}
    environ[CONTESTED] = {"localhost": ["::1"]}
    GUARD.check({**environ, "HTTP_HOST": "127.0.0.1:8564"}, None)
    for host, authority in (("localhost:8564", None), ("127.0.0.1", "LOCALHOST"), ("localhost.", None)):
        with pytest.raises(HTTPError) as refused:
            GUARD.check({**environ, "HTTP_HOST": host}, authority)
        assert refused.value.answer.status == 421


def test_a_wrong_name_is_logged_on_one_line(caplog):
    caplog.set_level(logging.INFO)
    assert refusal(HOST="evil\x1b[31m.example").status == 421
    assert [record.getMessage() for record in caplog.records] == [
        "refused a client (ours): it asks for 'evil\\x1b[31m.example'"
    ]


def test_an_address_typed_by_the_person_passes():
    check(HOST="localhost", SEC_FETCH_SITE="none")


def test_an_unauthenticated_client_is_refused():
    assert refusal(admitted=False, HOST="localhost").status == 403
