"""The tree: who runs, what each has said, as nodes. Knows no protocol and opens no socket."""

__version__ = "0.1.0"
