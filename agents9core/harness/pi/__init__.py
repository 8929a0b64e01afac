"""pi: its processes, the routes to their sessions, its store."""
