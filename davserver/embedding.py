"""The tree as a share of another WsgiDAV server, by its configuration file alone:

    provider_mapping:
      /agents:
        class: davserver.embedding.AgentsProvider

That server then says who may read; WsgiDAV's own request handlers answer.
"""

from agents9core.resolver import Resolver
from agents9core.tree.top import build_tree
from davserver.provider import TreeProvider


class AgentsProvider(TreeProvider):
    """Serves the agents of this machine."""

    def __init__(self, proc: str = "/proc", roots: dict[str, str] | None = None) -> None:
        """*proc*: the process table; *roots*: where harnesses keep their files, as `--root` says."""
        super().__init__(build_tree(Resolver(proc, roots or {})))
