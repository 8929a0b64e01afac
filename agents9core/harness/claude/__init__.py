"""Claude Code: its processes, the route to their sessions, its store, its transcripts."""
