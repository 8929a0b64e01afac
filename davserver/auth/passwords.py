"""Passwords for clients that cannot be known by their uid: HTTP Basic (RFC 7617) over salted scrypt hashes.

    Passwords.check → credentials: name and password of the header
                    → let in on this connection before? in
                    → the client is in its pause, or being tried? 429, whatever it claims
                    → remembered of the client? in; another one is being tried? 429; has it gone? 403
                    → scrypt, for a name that there is not too → remembered | counted, 401

What is remembered is of one client and is examined behind its pause: else who guesses would see there, at
once and without a try, which guess was right.

Knows no file and no socket: what the file says is handed in as a function, so a password that is changed
there counts from the next request on. scrypt takes a fifth of a second and 16 MiB, hence one at a time, and
hence what it found is remembered for a while, under a keyed hash.
"""

import base64
import hashlib
import hmac
import logging
import math
import os
import re
import threading
import time
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from typing import NamedTuple

from davserver.http.environ import RemoteClient
from davserver.http.response import HTTPError

logger = logging.getLogger(__name__)

CHALLENGE = ("WWW-Authenticate", 'Basic realm="agents9", charset="UTF-8"')
REMEMBER_SECONDS = 600
LONGEST_PAUSE_SECONDS = 60
MAX_CULPRITS = 1024
"""Clients whose failures are counted; beyond, the one that failed longest ago is forgotten."""
MAX_PASSWORD_BYTES = 1024
MAX_MEMORY_BYTES = 256 << 20
SALT_BYTES = 16
DIGEST_BYTES = 32

_BASE64 = r"([A-Za-z0-9+/]+={0,2})"
_LINE = re.compile(rf"([^:]+):scrypt\$([0-9]{{1,8}})\$([0-9]{{1,3}})\$([0-9]{{1,3}})\${_BASE64}\${_BASE64}")
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
_BASIC = re.compile(r"basic +(\S+) *", re.IGNORECASE)


class Cost(NamedTuple):
    """The parameters of scrypt (RFC 7914 section 2)."""

    n: int
    r: int
    p: int

    def memory(self) -> int:
        """Return about how many bytes it takes."""
        return 128 * self.r * (self.n + self.p + 2)


COST = Cost(1 << 14, 8, 5)


class Hash(NamedTuple):
    """A password, as far as the file knows it."""

    cost: Cost
    salt: bytes
    digest: bytes

    @classmethod
    def of(cls, password: bytes, cost: Cost = COST) -> "Hash":
        """Hash *password* with a new salt."""
        salt = os.urandom(SALT_BYTES)
        return cls(cost, salt, _scrypt(password, salt, cost))

    def matches(self, password: bytes) -> bool:
        """Return whether it is the hash of *password*, in the same time whatever the answer."""
        return hmac.compare_digest(_scrypt(password, self.salt, self.cost), self.digest)

    def __str__(self) -> str:
        fields = [str(number) for number in self.cost]
        fields += [base64.b64encode(part).decode() for part in (self.salt, self.digest)]
        return "$".join(["scrypt", *fields])


def _scrypt(password: bytes, salt: bytes, cost: Cost) -> bytes:
    n, r, p = cost
    return hashlib.scrypt(
        password, salt=salt, n=n, r=r, p=p, maxmem=cost.memory() + (1 << 20), dklen=DIGEST_BYTES
    )


def check_name(name: str) -> None:
    """Raise ValueError unless *name* can stand in the file and in a header."""
    if not name or ":" in name or name.startswith("#") or _CONTROL.search(name.encode()):
        raise ValueError("a name is not empty, begins with no # and holds neither : nor control characters")


def check_password(password: bytes) -> None:
    """Raise ValueError unless *password* can be sent in a header."""
    if not password or len(password) > MAX_PASSWORD_BYTES or _CONTROL.search(password):
        raise ValueError(f"a password has 1 to {MAX_PASSWORD_BYTES} bytes and no control characters")


def parse_line(line: str) -> tuple[str, Hash]:
    """Parse `name:scrypt$n$r$p$salt$digest`. Raises ValueError."""
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError("is not name:scrypt$...")
    name, *numbers, salt, digest = match.groups()
    check_name(name)
    cost = Cost(*map(int, numbers))
    if cost.n < 2 or cost.n & (cost.n - 1) or not cost.r or not 0 < cost.p <= 64:
        raise ValueError("has numbers that scrypt does not take")
    if cost.memory() > MAX_MEMORY_BYTES:
        raise ValueError(f"needs more than {MAX_MEMORY_BYTES >> 20} MiB for each try")
    found = Hash(cost, base64.b64decode(salt, validate=True), base64.b64decode(digest, validate=True))
    if len(found.digest) != DIGEST_BYTES:
        raise ValueError(f"has a digest that is not {DIGEST_BYTES} bytes long")
    return name, found


def parse_file(data: bytes) -> dict[bytes, Hash]:
    """Return the hash of each name of a password file. Raises ValueError, which names the line.

    Empty lines and those that begin with # say nothing.
    """
    found: dict[bytes, Hash] = {}
    for number, line in enumerate(data.decode().split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            name, hashed = parse_line(line)
        except ValueError as exc:
            raise ValueError(f"line {number} {exc}") from exc
        if name.encode() in found:
            raise ValueError(f"line {number} has a name that an earlier one has")
        found[name.encode()] = hashed
    return found


def credentials(header: str | None) -> tuple[bytes, bytes] | None:
    """Return name and password of an Authorization header (as WSGI spells it); None where it has none."""
    match = _BASIC.fullmatch(header or "")
    if match is None:
        return None
    try:
        claimed = base64.b64decode(match[1].encode("latin-1"), validate=True)
    except NotBase64:
        return None
    name, colon, password = claimed.partition(b":")
    return (name, password) if colon and len(password) <= MAX_PASSWORD_BYTES else None


class _Proof(NamedTuple):
    """That a password was right: for as long as the file says the same, and not for ever."""

    name: bytes
    hashed: Hash
    until: float


class _Failures(NamedTuple):
    times: int
    last: float

    def pause(self) -> float:
        """Return how long after the last one nothing is tried: 1, 2, 4 ... seconds."""
        return min(2.0 ** min(self.times - 1, 16), LONGEST_PAUSE_SECONDS)


class Passwords:
    """Lets those in who have a password. Used from several threads.

    *known* returns the hash of each name as things stand now; *clock* gives seconds.
    """

    def __init__(
        self, known: Callable[[], Mapping[bytes, Hash]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._known = known
        self._clock = clock
        self._key = os.urandom(32)
        self._decoy = Hash(COST, os.urandom(SALT_BYTES), os.urandom(DIGEST_BYTES))
        self._lock = threading.Lock()
        self._trying: str | None = None
        """Whose password is being tried."""
        self._proofs: dict[bytes, _Proof] = {}
        self._failures: dict[str, _Failures] = {}

    def check(self, header: str | None, asker: RemoteClient) -> None:
        """Let the bearer of an Authorization *header* in, or raise HTTPError: 401, 403, 429.

        Failures are counted by the name of *asker*, so that one who guesses does not keep out another.
        """
        claimed = credentials(header)
        if claimed is None:
            raise HTTPError(401, "This server needs a name and a password from you", CHALLENGE)
        if asker.name is None:
            raise ValueError("nobody has no try")
        known = self._known()
        mark = hashlib.blake2b(asker.name.encode() + b"\0" + b":".join(claimed), key=self._key).digest()
        with self._lock:
            if self._is_in(mark, known, asker, asker.name):
                return
            self._trying = asker.name
        try:
            self._try(*claimed, mark, known, asker.name)
        finally:
            self._trying = None
        asker.proof = mark

    def _is_in(self, mark: bytes, known: Mapping[bytes, Hash], asker: RemoteClient, client: str) -> bool:
        """Return whether what *mark* stands for is known to be right; False if it may be tried now."""
        is_remembered = self._is_remembered(mark, known)
        if is_remembered and asker.proof == mark:
            return True
        failures = self._failures_of(client)
        wait = failures.last + failures.pause() - self._clock() if failures.times else 0
        if wait > 0:
            raise _later(wait)
        if self._trying == client or (self._trying and not is_remembered):
            raise _later(1)
        if is_remembered:
            asker.proof = mark
        elif not asker.is_there():
            raise HTTPError(403, "Who has gone gets no try")
        return is_remembered

    def _is_remembered(self, mark: bytes, known: Mapping[bytes, Hash]) -> bool:
        proof = self._proofs.get(mark)
        return proof is not None and known.get(proof.name) == proof.hashed and self._clock() < proof.until

    def _try(
        self, name: bytes, password: bytes, mark: bytes, known: Mapping[bytes, Hash], client: str
    ) -> None:
        """Compare, one at a time; a name that there is not takes as long as one that there is."""
        hashed = known.get(name)
        if not (hashed or self._decoy_like(known)).matches(password) or hashed is None:
            self._count(client, self._failures_of(client).times + 1)
            logger.info("refused a client (%s): a wrong name or password", client)
            raise HTTPError(401, "The name or the password is wrong", CHALLENGE)
        self._failures.pop(client, None)
        now = self._clock()
        self._proofs = {key: proof for key, proof in self._proofs.items() if now < proof.until}
        self._proofs[mark] = _Proof(name, hashed, now + REMEMBER_SECONDS)

    def _decoy_like(self, known: Mapping[bytes, Hash]) -> Hash:
        return self._decoy._replace(cost=next(iter(known.values()), self._decoy).cost)

    def _failures_of(self, client: str) -> _Failures:
        failures = self._failures.get(client)
        if failures is None or self._clock() - failures.last > REMEMBER_SECONDS:
            return _Failures(0, 0)
        return failures

    def _count(self, client: str, times: int) -> None:
        self._failures.pop(client, None)
        if len(self._failures) >= MAX_CULPRITS:
            del self._failures[next(iter(self._failures))]
        self._failures[client] = _Failures(times, self._clock())


def _later(seconds: float) -> HTTPError:
    return HTTPError(429, "Too many tries; ask again later", ("Retry-After", str(math.ceil(seconds))))
