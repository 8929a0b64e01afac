"""A minute of the soak."""

import pytest

from tests.soak.run import soak

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]


def test_a_minute_of_agents_and_clients_has_no_wrong_byte_and_no_wrong_name(tmp_path):
    report = soak(tmp_path, 60)
    assert report.faults() == []
    assert report.requests > 1000
    assert report.checked_bytes > 1 << 20
