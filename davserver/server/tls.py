"""TLS (RFC 8446) for the HTTP front end: the certificate, and sockets that never wait for the other end.

    TlsAdapter(certificate, key) → wrap(accepted socket) → TlsSocket
        shake, whenever the client has sent something, until the handshake is done
        recv, sendmsg: as of a plain socket that does not block

What OpenSSL says becomes what a plain socket would say: BlockingIOError, or that the connection is broken.
Only `agents9 serve --tls-cert` loads this module. With `connection` it is one of the modules of this front
end that know sockets.
"""

import contextlib
import errno
import select
import socket
import ssl
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from cheroot.ssl import Adapter

from davserver.config_error import ConfigError

RECORD_BYTES = 16384
"""What one record of TLS holds. A send that could not finish is tried again with the same bytes at its
front, so no more than a record is handed over at a time."""
PLAIN_HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 27\r\nConnection: close\r\n\r\nThis port is for https://\r\n"


class TlsAdapter(Adapter):
    """The server's certificate and key, as cheroot wants them."""

    def __init__(self, certificate: str, key: str) -> None:
        """Read both files, in PEM; that of the certificate holds the chain behind it. Raises Unfit."""
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.set_alpn_protocols(["http/1.1"])
        _check(certificate, b"-----BEGIN CERTIFICATE-----", "certificate")
        _check(key, b"PRIVATE KEY-----", "private key")
        _check_mode(key)
        try:
            self.context.load_cert_chain(certificate, key, lambda: _has_passphrase(key))
        except ssl.SSLError as exc:
            if exc.reason == "KEY_VALUES_MISMATCH":
                raise ConfigError(f"{key} is not the key of the certificate in {certificate}") from exc
            raise ConfigError(f"cannot use {certificate} with {key}: {exc.reason or exc}") from exc
        except OSError as exc:
            raise ConfigError(f"cannot read {certificate} or {key}: {exc.strerror}") from exc

    def bind(self, sock: socket.socket) -> socket.socket:
        return sock

    def get_environ(self) -> dict[str, str]:
        return {}

    def makefile(self, sock: socket.socket, mode: str = "r", bufsize: int = -1) -> NoReturn:
        raise NotImplementedError("the connection reads and writes by itself")

    def wrap(self, sock: socket.socket) -> "tuple[TlsSocket, dict[str, str]]":
        """Speak TLS over an accepted socket, which is the TlsSocket's from now on.

        The handshake is not made here, where a client that is silent would hold up all others. Raises
        ConnectionError where the client has left already.
        """
        try:
            sock.getpeername()  # else `ssl` would look for what it said, and leave the socket open
            made = self.context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        except OSError as exc:
            raise _broken(exc) from exc
        return TlsSocket(made), self.get_environ()


def _check(path: str, mark: bytes, what: str) -> None:
    """Raise Unfit where the file cannot be read or has none; OpenSSL would not say which."""
    try:
        if mark not in Path(path).read_bytes():
            raise ConfigError(f"{path} holds no {what} in PEM")
    except OSError as exc:
        raise ConfigError(f"cannot read {path}: {exc.strerror}") from exc


def _check_mode(key: str) -> None:
    """Raise Unfit where every user could read or change it; a group, as ssl-cert, may be meant to."""
    mode = stat.S_IMODE(Path(key).stat().st_mode)
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        raise ConfigError(f"{key} has mode {mode:04o}, and every user can use it: chmod 600 {key}")


def _has_passphrase(key: str) -> str:
    raise ConfigError(f"{key} needs a passphrase, which cannot be given here; remove it with: openssl pkey")


class TlsSocket:
    """An accepted socket with the face of a plain one that does not block."""

    def __init__(self, sock: ssl.SSLSocket) -> None:
        self._sock = sock
        self._has_parted = False

    def shake(self) -> int:
        """Go on with the handshake; return the events to wait for, 0 when it is done.

        Raises ConnectionError.
        """
        try:
            self._sock.do_handshake()
        except ssl.SSLWantReadError:
            return select.EPOLLIN
        except ssl.SSLWantWriteError:
            return select.EPOLLOUT
        except OSError as exc:
            if isinstance(exc, ssl.SSLError) and exc.reason == "HTTP_REQUEST":
                with contextlib.suppress(OSError):
                    socket.socket.send(self._sock, PLAIN_HTTP)
            raise _broken(exc) from exc
        return 0

    def recv(self, size: int) -> bytes:
        """Receive a record or less; b"" at the end. Raises OSError.

        *size* is to be RECORD_BYTES or more: what is left of a record no epoll would tell of. After the
        goodbye it is what came, as it came: nobody reads it any more.
        """
        if self._has_parted:
            return socket.socket.recv(self._sock, size)
        try:
            return self._sock.recv(size)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as exc:
            raise BlockingIOError(errno.EAGAIN, "no whole record yet") from exc
        except ssl.SSLError as exc:
            raise _broken(exc) from exc

    def sendmsg(self, parts: Sequence[memoryview]) -> int:
        """Send some of *parts*; return how many bytes of them. Raises OSError."""
        data, left = bytearray(), RECORD_BYTES
        for part in parts:
            data += part[:left]
            left = RECORD_BYTES - len(data)
            if not left:
                break
        try:
            return self._sock.send(data)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as exc:
            raise BlockingIOError(errno.EAGAIN, "the socket is full") from exc
        except ssl.SSLError as exc:
            raise _broken(exc) from exc

    def say_goodbye(self) -> bool:
        """Let the client know that what it has is all (section 6.1); False while the socket is full."""
        try:
            self._sock.unwrap()
        except ssl.SSLWantWriteError:
            return False
        except OSError:
            pass  # it is said, and the client has not said its own
        self._has_parted = True
        return True

    def fileno(self) -> int:
        return self._sock.fileno()

    def shutdown(self, how: int) -> None:
        """End the connection below TLS, whatever another thread is doing with it."""
        socket.socket.shutdown(self._sock, how)

    def close(self) -> None:
        self._sock.close()


def _broken(exc: OSError) -> ConnectionResetError:
    reason = exc.reason if isinstance(exc, ssl.SSLError) else exc.strerror
    return ConnectionResetError(errno.ECONNRESET, f"TLS: {reason or exc}")
