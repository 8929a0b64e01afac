"""A stock WsgiDAV on cheroot: of a directory by its own provider, or of agents by ours with its own handlers.

python -m bench.stock_wsgidav files DIRECTORY      prints its port
python -m bench.stock_wsgidav agents PROC          the same
"""

import sys

from cheroot.wsgi import Server
from wsgidav.fs_dav_provider import FilesystemProvider
from wsgidav.wsgidav_app import WsgiDAVApp

from davserver.embedding import AgentsProvider

_THREADS = 8


def main(kind: str, place: str) -> None:
    provider = FilesystemProvider(place, readonly=True) if kind == "files" else AgentsProvider(place)
    app = WsgiDAVApp(
        {
            "provider_mapping": {"/": provider},
            "simple_dc": {"user_mapping": {"*": True}},
            "logging": {"enable": False},
            "verbose": 1,
        }
    )
    server = Server(("127.0.0.1", 0), app, numthreads=_THREADS, request_queue_size=1024, timeout=30)
    server.keep_alive_conn_limit = None
    server.prepare()
    print(server.bind_addr[1], flush=True)
    server.serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
