"""The 9P front end. Each knows those before it: wire, messages, shape, dialect, fid, session, server."""
