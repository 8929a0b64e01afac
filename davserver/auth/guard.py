"""Who may ask: the same user, or who has a password, under a name of this server, from no other web site.

A page of another site can make a browser send requests here, and can even rebind its own name to
127.0.0.1, but it cannot choose `Host`, `Origin` and `Sec-Fetch-Site`. Sources: RFC 9110 sections 7.2 and
7.4, Fetch (Origin), Fetch Metadata (Sec-Fetch-Site). Also a link on another site is refused.
"""

import logging
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from davserver.http.environ import CONTESTED, PEER, PEER_ADMITTED, STRANGER
from davserver.http.response import HTTPError

if TYPE_CHECKING:
    from davserver.auth.passwords import Passwords

logger = logging.getLogger(__name__)

_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^][:@/\s]+)(?::\d*)?")


class Guard:
    """Checks each request before the tree is touched.

    *hosts* are names of this server beside the loopback ones and the address that it listens on. Without
    *passwords* only those come in whom the listener knows. Who is on this machine and cannot be named gets no
    try at a password: there would be nothing to count his failures by.
    """

    def __init__(self, hosts: Iterable[str], passwords: "Passwords | None" = None) -> None:
        self._passwords = passwords
        self._hosts = frozenset(_spelt(host) for host in (*_LOOPBACK_NAMES, *hosts))

    def check(self, environ: dict[str, Any], authority: str | None) -> None:
        """Let the request pass or raise HTTPError. *authority* is that of an absolute-form target."""
        is_admitted, client = environ.get(PEER_ADMITTED), environ.get(STRANGER)
        if not is_admitted and (self._passwords is None or client is None or client.name is None):
            raise HTTPError(403, "Only the user who runs this server may read it")
        host = environ.get("HTTP_HOST")
        if host is None and environ["SERVER_PROTOCOL"] != "HTTP/1.0":
            raise HTTPError(400, "There is no Host header")
        for name in (host, authority):
            if name is not None and not self._is_ours(name, environ):
                logger.info("refused a client (%s): it asks for %.200r", environ.get(PEER) or "ours", name)
                raise HTTPError(421, "This server does not go by that name (see --allow-host)")
        self._check_site(environ, authority or host or "")
        if not is_admitted and self._passwords is not None and client is not None:
            self._passwords.check(environ.get("HTTP_AUTHORIZATION"), client)

    def _is_ours(self, authority: str, environ: dict[str, Any]) -> bool:
        match = _HOST.fullmatch(authority)
        name = match[1].lower().rstrip(".") if match else ""
        if name in environ.get(CONTESTED, ()):
            return False
        return name in self._hosts or name == _spelt(environ["SERVER_NAME"])

    def _check_site(self, environ: dict[str, Any], host: str) -> None:
        origin = environ.get("HTTP_ORIGIN")
        if origin is not None and (not host or origin.partition("://")[2].lower() != host.lower()):
            raise HTTPError(403, "Another site may not ask")
        if environ.get("HTTP_SEC_FETCH_SITE", "none") not in ("none", "same-origin"):
            raise HTTPError(403, "Another site may not ask")


def _spelt(host: str) -> str:
    """Return a name or address as a Host header spells it."""
    return f"[{host.lower()}]" if ":" in host and not host.startswith("[") else host.lower().rstrip(".")
