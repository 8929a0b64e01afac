"""Settings that the tests of the core share."""

import pytest
from hypothesis import settings

from agents9core import resolver as resolver_module
from agents9core.resolver import Resolver
from tests.agents9core.fakeproc import FakeProc

settings.register_profile("core", deadline=None)
settings.load_profile("core")


@pytest.fixture
def every_look_is_fresh(monkeypatch):
    """Let the resolver use no answer twice."""
    monkeypatch.setattr(resolver_module, "REUSE_SECONDS", -1)
    monkeypatch.setattr(resolver_module, "_SCAN_SHARE", 0)


@pytest.fixture
def proc(tmp_path):
    """A process table."""
    return FakeProc(tmp_path / "proc")


@pytest.fixture
def resolver(proc):
    """Looks at that table."""
    return Resolver(str(proc.root))
