"""codex: its processes, the routes to their threads, its store, its rollouts."""
