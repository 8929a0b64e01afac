"""The front ends: the tree of `agents9core` over 9P and over WebDAV/HTTP."""
