"""The 9P door. Each knows those before it: wire, messages, shape, dialect, fid, session, server."""
