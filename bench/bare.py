"""A cheroot server of one line: what its HTTP costs before anybody does anything.

python -m bench.bare FILE BYTES     prints its port; /file is FILE, everything else a body of BYTES
"""

import os
import sys

from cheroot.wsgi import Server

from davserver.handlers.file import CHUNK_BYTES
from davserver.server.limits import BACKLOG

_THREADS = 8
_TIMEOUT_SECONDS = 30


def main(path: str, count: str) -> None:
    body = b"x" * int(count)

    def small(environ, start_response):
        start_response("200 OK", [("Content-Length", count), ("Content-Type", "text/plain; charset=utf-8")])
        return [body]

    def file(environ, start_response):
        start_response("200 OK", [("Content-Length", str(os.path.getsize(path)))])
        with open(path, "rb", buffering=0) as opened:
            while data := opened.read(CHUNK_BYTES):
                yield data

    def app(environ, start_response):
        return (file if environ["PATH_INFO"] == "/file" else small)(environ, start_response)

    server = Server(
        ("127.0.0.1", 0), app, numthreads=_THREADS, request_queue_size=BACKLOG, timeout=_TIMEOUT_SECONDS
    )
    server.keep_alive_conn_limit = None
    server.prepare()
    print(server.bind_addr[1], flush=True)
    server.serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
