"""What answers a request: one module a kind of answer. They know nodes and HTTP, no sockets."""
