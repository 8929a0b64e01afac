"""Settings that the tests of the core share."""

import pytest
from hypothesis import settings

from agents9core import resolver as resolver_module
from agents9core.harness.claude import places
from agents9core.resolver import Resolver
from agents9core.tree import context
from tests.support.fakeproc import FakeProc

settings.register_profile("core", deadline=None)
settings.load_profile("core")


@pytest.fixture
def counts_looks():
    """Says that a test counts what is looked at, so that no second server may look as well."""


@pytest.fixture
def every_look_is_fresh(monkeypatch, request):
    """Let the resolver use no answer twice, and hold each to the law: a server that was just started, and
    has seen nothing, says the same.
    """
    monkeypatch.setattr(resolver_module, "REUSE_SECONDS", -1)
    monkeypatch.setattr(resolver_module, "_SCAN_SHARE", 0)
    monkeypatch.setattr(places, "LOOK_SECONDS", -1)
    monkeypatch.setattr(context, "SUBAGENTS_SECONDS", -1)
    if "counts_looks" in request.fixturenames:
        return
    real = Resolver.session

    def session(self, agent):
        answer = real(self, agent)
        fresh = Resolver(self._table.root, self.roots)
        again = real(fresh, fresh.agent(agent.harness, agent.pid))
        assert _told(again) == _told(answer), "a server that was just started says something else"
        return answer

    monkeypatch.setattr(Resolver, "session", session)


def _told(session):
    """Return what an answer says of who is in what; files are looked for once a second."""
    return session._replace(sources=(), missing_base=None, threads=tuple(map(_told, session.threads)))


@pytest.fixture
def proc(tmp_path):
    """A process table."""
    return FakeProc(tmp_path / "proc")


@pytest.fixture
def resolver(proc):
    """Looks at that table."""
    return Resolver(str(proc.root))
