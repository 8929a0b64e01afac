"""hermes: its processes, and the route to their sessions."""
