"""The 9P door: `wire`, `messages`, `shape`, `dialect`, `session`, `server`; each knows those before it."""
