"""The tree: the agents that run and their chats, as nodes. Knows no protocol and opens no socket."""

__version__ = "0.1.0"
