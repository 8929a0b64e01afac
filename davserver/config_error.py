"""The error of a configuration that the command line, or a file that it names, can mend."""


class ConfigError(Exception):
    """It cannot be used as it is; the text says what to do."""
