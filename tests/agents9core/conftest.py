"""Settings that the tests of the core share."""

from hypothesis import settings

settings.register_profile("core", deadline=None)
settings.load_profile("core")
