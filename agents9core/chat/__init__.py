"""From the bytes of a transcript to messages, and the index of where each stands.

Knows no harness and no node.
"""
