"""Files below a pinned directory: opened without following links, looked at with statx, never trusted."""
