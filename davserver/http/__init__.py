"""Pure parts of HTTP: RFC 9110 (semantics), 9112 (syntax), 4918 (WebDAV). No sockets, no nodes."""
