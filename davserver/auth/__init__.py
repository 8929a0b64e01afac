"""Who may read: the client's uid, passwords, the name and site a request is for."""
