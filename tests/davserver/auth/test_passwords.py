"""What a password file says, what a header claims, and who is let in by it."""

import base64
import logging
import threading

import pytest

from davserver.auth import passwords as password
from davserver.auth.passwords import (
    CHALLENGE,
    COST,
    LONGEST_PAUSE_SECONDS,
    MAX_CULPRITS,
    MAX_PASSWORD_BYTES,
    REMEMBER_SECONDS,
    Cost,
    Hash,
    Passwords,
    check_name,
    check_password,
    credentials,
    parse_file,
    parse_line,
)
from davserver.http.environ import RemoteClient
from davserver.http.response import HTTPError

CHEAP = Cost(2, 1, 1)
PASSWORD = 'pa "ss\\w#rd:ü'.encode()


def basic(name, password):
    return "Basic " + base64.b64encode(name.encode() + b":" + password).decode()


GOOD = basic("alice", PASSWORD)
BAD = basic("alice", b"guess")


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class CountedHash(Hash):
    tries = 0

    def matches(self, password):
        type(self).tries += 1
        return super().matches(password)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def known():
    CountedHash.tries = 0
    return {b"alice": CountedHash(*Hash.of(PASSWORD, CHEAP)), b"bob": CountedHash(*Hash.of(b"b", CHEAP))}


@pytest.fixture
def passwords(known, clock):
    return Passwords(lambda: known, clock)


def on_a_connection(name="uid 7", is_there=True):
    return RemoteClient(name, lambda: is_there)


def let_in(passwords, header, client="uid 7"):
    passwords.check(header, on_a_connection(client))


def refusal(passwords, header, client="uid 7"):
    with pytest.raises(HTTPError) as refused:
        let_in(passwords, header, client)
    return refused.value.answer


def test_a_hash_knows_its_password_only():
    hashed = Hash.of(PASSWORD)
    assert hashed.matches(PASSWORD)
    assert not hashed.matches(PASSWORD + b" ")
    assert not hashed.matches(b"")


def test_each_hash_has_a_salt_of_its_own():
    one, other = Hash.of(b"same", CHEAP), Hash.of(b"same", CHEAP)
    assert one.salt != other.salt
    assert one.digest != other.digest


def test_the_known_answer_of_the_rfc():
    """RFC 7914 section 12, the first 32 bytes of the second vector."""
    digest = bytes.fromhex("fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162")
    assert Hash(Cost(1024, 8, 16), b"NaCl", digest).matches(b"password")


def test_a_try_costs_an_attacker_memory_and_time():
    assert COST.memory() >= 16 << 20
    assert COST.n * COST.r * COST.p >= 5 * 8 * (1 << 14)


def test_a_line_says_what_was_hashed():
    hashed = Hash.of(PASSWORD)
    assert parse_line(f"alice:{hashed}") == ("alice", hashed)
    assert PASSWORD.decode() not in str(hashed)


def test_a_file_has_comments_and_empty_lines():
    hashed = Hash.of(b"x", CHEAP)
    text = f"# who may read\n\nalice:{hashed}\nbjörk:{hashed}\n"
    assert parse_file(text.encode()) == {b"alice": hashed, "björk".encode(): hashed}


GOOD_LINE = f"alice:{Hash.of(b'x', CHEAP)}"
SALT, DIGEST = base64.b64encode(b"salt").decode(), base64.b64encode(bytes(32)).decode()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("alice:secret", "is not name:scrypt"),
        ("alice:$2y$05$abcdefgh", "is not name:scrypt"),
        (f":scrypt$2$1$1${SALT}${DIGEST}", "is not name:scrypt"),
        (f"a:scrypt$0$1$1${SALT}${DIGEST}", "numbers"),
        (f"a:scrypt$3$1$1${SALT}${DIGEST}", "numbers"),
        (f"a:scrypt$2$0$1${SALT}${DIGEST}", "numbers"),
        (f"a:scrypt$2$1$0${SALT}${DIGEST}", "numbers"),
        (f"a:scrypt$2$1$999${SALT}${DIGEST}", "numbers"),
        (f"a:scrypt$67108864$8$1${SALT}${DIGEST}", "MiB"),
        (f"a:scrypt$2$1$1${SALT}${SALT}", "32 bytes"),
        (f"a:scrypt$2$1$1$A${DIGEST}", ""),
        (f"a:scrypt$2$1$1${SALT}${DIGEST} ", "is not name:scrypt"),
        (f"a:scrypt$2$1$1${SALT}${DIGEST}\r", "is not name:scrypt"),
        (f"a\x1b:scrypt$2$1$1${SALT}${DIGEST}", "control"),
        (GOOD_LINE, "an earlier one"),
    ],
)
def test_a_bad_line_is_named(line, why):
    with pytest.raises(ValueError, match=f"^line 2 .*{why}") as caught:
        parse_file(f"{GOOD_LINE}\n{line}\n".encode())
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "a:b", "#a", "a\nb", "a\0", "\x7f"])
def test_names_that_cannot_be(name):
    with pytest.raises(ValueError, match="a name"):
        check_name(name)


@pytest.mark.parametrize("password", [b"", b"a\nb", b"\0", b"x" * (MAX_PASSWORD_BYTES + 1)])
def test_passwords_that_cannot_be(password):
    with pytest.raises(ValueError, match="a password"):
        check_password(password)


@pytest.mark.parametrize("scheme", ["Basic ", "basic ", "BASIC   "])
def test_a_header_claims_a_name_and_a_password(scheme):
    claimed = scheme + base64.b64encode("ü:a:b".encode()).decode()
    assert credentials(claimed) == ("ü".encode(), b"a:b")


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Basic",
        "Basic ",
        "Basic !!!!",
        "Basic YTpi YTpi",
        "Basic YTpi, Basic YTpi",
        "Basic YTp",
        "Basic " + base64.b64encode(b"nocolon").decode(),
        "Basic YTp\xe9",
        "Bearer YTpi",
        "Digest username=alice",
        basic("a", b"x" * (MAX_PASSWORD_BYTES + 1)),
    ],
)
def test_a_header_that_claims_nothing_is_challenged_without_a_try(passwords, header):
    assert credentials(header) is None
    answer = refusal(passwords, header)
    assert answer.status == 401
    assert ("WWW-Authenticate", 'Basic realm="agents9", charset="UTF-8"') in answer.headers
    assert CountedHash.tries == 0


def test_the_right_password_lets_in(passwords):
    let_in(passwords, GOOD)
    let_in(passwords, basic("bob", b"b"))


@pytest.mark.parametrize(
    "header", [BAD, basic("alice", b""), basic("bob", PASSWORD), basic("carol", PASSWORD), basic("", b"b")]
)
def test_anything_else_is_challenged_again(passwords, header):
    answer = refusal(passwords, header)
    assert answer.status == 401
    assert CHALLENGE in answer.headers


def test_a_name_that_there_is_not_costs_the_same_try(known, clock, monkeypatch):
    tried = []
    matches = Hash.matches
    monkeypatch.setattr(Hash, "matches", lambda hashed, given: tried.append(hashed) or matches(hashed, given))
    passwords = Passwords(lambda: known, clock)
    assert refusal(passwords, basic("carol", b"b")).status == 401
    assert [hashed.cost for hashed in tried] == [CHEAP]


def test_what_was_right_is_not_tried_again_for_ten_minutes(passwords, clock):
    for _ in range(5):
        let_in(passwords, GOOD)
        clock.now += 100
    assert CountedHash.tries == 1
    clock.now = 1000 + REMEMBER_SECONDS
    let_in(passwords, GOOD)
    assert CountedHash.tries == 2


def test_it_is_remembered_under_a_keyed_hash(passwords, known, clock):
    let_in(passwords, GOOD)
    other = Passwords(lambda: known, clock)
    let_in(other, GOOD)
    (mark,), (other_mark,) = passwords._proofs, other._proofs
    assert mark != other_mark
    assert PASSWORD not in mark


def test_what_is_remembered_does_not_grow(passwords, clock):
    for _ in range(5):
        let_in(passwords, GOOD)
        let_in(passwords, basic("bob", b"b"))
        clock.now += REMEMBER_SECONDS
    assert len(passwords._proofs) <= 2


def test_a_password_that_is_changed_or_taken_away_counts_at_once(passwords, known, clock):
    let_in(passwords, GOOD)
    kept = known[b"alice"]
    known[b"alice"] = CountedHash(*Hash.of(b"another", CHEAP))
    assert refusal(passwords, GOOD).status == 401
    known[b"alice"] = kept
    clock.now += 1
    let_in(passwords, GOOD)
    known.clear()
    assert refusal(passwords, GOOD, "uid 8").status == 401


def retry_after(answer):
    assert answer.status == 429
    return int(dict(answer.headers)["Retry-After"])


def test_after_failures_the_next_try_has_to_wait_longer_and_longer(passwords, clock):
    waits = []
    for _ in range(9):
        assert refusal(passwords, BAD).status == 401
        waits.append(retry_after(refusal(passwords, GOOD)))
        clock.now += waits[-1]
    assert waits == [1, 2, 4, 8, 16, 32, LONGEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS]
    assert CountedHash.tries == 9
    let_in(passwords, GOOD)


def test_a_success_and_a_long_time_forgive(passwords, clock):
    for forgiven in (lambda: let_in(passwords, basic("bob", b"b")), lambda: None):
        for _ in range(3):
            assert refusal(passwords, BAD).status == 401
            clock.now += LONGEST_PAUSE_SECONDS
        forgiven()
        clock.now += REMEMBER_SECONDS
        assert refusal(passwords, BAD).status == 401
        assert retry_after(refusal(passwords, BAD)) == 1
        clock.now += 1


def test_one_who_guesses_keeps_out_nobody_else(passwords, clock):
    assert refusal(passwords, BAD, "uid 8").status == 401
    assert retry_after(refusal(passwords, GOOD, "uid 8"))
    let_in(passwords, GOOD)


def test_who_guesses_learns_nothing_in_his_pause_from_what_is_remembered(passwords):
    let_in(passwords, GOOD, "uid 7")
    let_in(passwords, GOOD, "uid 8")
    for guesser in ("uid 8", "uid 9"):
        assert refusal(passwords, BAD, guesser).status == 401
        assert retry_after(refusal(passwords, GOOD, guesser)) == 1
        assert retry_after(refusal(passwords, BAD, guesser)) == 1
    let_in(passwords, GOOD, "uid 7")


def test_who_was_let_in_on_a_connection_is_not_kept_out_by_who_guesses_beside_him(passwords, known):
    connection = on_a_connection()
    passwords.check(GOOD, connection)
    assert refusal(passwords, BAD).status == 401
    passwords.check(GOOD, connection)
    with pytest.raises(HTTPError) as refused:
        passwords.check(basic("bob", b"b"), connection)
    assert retry_after(refused.value.answer)
    known.clear()
    with pytest.raises(HTTPError) as refused:
        passwords.check(GOOD, connection)
    assert retry_after(refused.value.answer)


def test_what_one_client_proved_is_not_remembered_of_another(passwords):
    let_in(passwords, GOOD, "uid 7")
    let_in(passwords, GOOD, "uid 8")
    assert CountedHash.tries == 2


def test_who_has_gone_gets_no_try(passwords):
    for header in (GOOD, BAD):
        with pytest.raises(HTTPError) as refused:
            passwords.check(header, on_a_connection(is_there=False))
        assert refused.value.answer.status == 403
    assert CountedHash.tries == 0
    let_in(passwords, GOOD)


def test_nobody_gets_no_try(passwords):
    with pytest.raises(ValueError, match="nobody"):
        let_in(passwords, GOOD, None)
    assert CountedHash.tries == 0


def test_digests_are_compared_in_constant_time(monkeypatch):
    compared = []
    compare = password.hmac.compare_digest
    monkeypatch.setattr(
        password.hmac, "compare_digest", lambda one, other: compared.append(other) or compare(one, other)
    )
    hashed = Hash.of(b"x", CHEAP)
    assert hashed.matches(b"x")
    assert not hashed.matches(b"y")
    assert compared == [hashed.digest] * 2


def test_what_is_counted_is_bounded(passwords):
    for uid in range(MAX_CULPRITS + 10):
        assert refusal(passwords, BAD, f"uid {uid}").status == 401
    assert len(passwords._failures) == MAX_CULPRITS
    assert retry_after(refusal(passwords, BAD, f"uid {MAX_CULPRITS}"))


def test_one_is_tried_at_a_time(known, clock):
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Hash):
        def matches(self, password):
            begun.set()
            assert go_on.wait(20)
            return super().matches(password)

    known[b"alice"] = Slow(*known[b"alice"])
    passwords = Passwords(lambda: known, clock)
    first = threading.Thread(target=let_in, args=(passwords, GOOD))
    first.start()
    assert begun.wait(20)
    assert retry_after(refusal(passwords, basic("bob", b"b"))) == 1
    assert retry_after(refusal(passwords, GOOD, "uid 8")) == 1
    go_on.set()
    first.join()
    let_in(passwords, basic("bob", b"b"))
    let_in(passwords, GOOD)


def test_a_wrong_password_is_logged_without_what_was_tried(passwords, caplog):
    caplog.set_level(logging.INFO)
    with pytest.raises(HTTPError):
        let_in(passwords, BAD)
    assert [record.getMessage() for record in caplog.records] == [
        "refused a client (uid 7): a wrong name or password"
    ]
