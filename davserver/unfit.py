"""What keeps a server from starting that the command line, or a file it names, can mend."""


class ConfigError(Exception):
    """It cannot be used as it is; the text says what to do."""
