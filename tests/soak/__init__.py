"""A soak: agents that come, talk, clear and go, and clients at both front ends that check every byte they
get.

`make soak`, or `python -m tests.soak SECONDS`. `story` writes, and keeps its own book of what must be served;
`readers` ask; `run` watches the server's memory and descriptors meanwhile. Nothing here uses the product.
"""
