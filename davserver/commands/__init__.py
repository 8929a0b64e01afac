"""The commands of `agents9`, a module each."""
