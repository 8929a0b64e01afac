"""Path numbers: one thing, one number, and never another's."""

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from agents9core import identity as identity_module
from agents9core.chat.index import CAP
from agents9core.identity import LEAVES, PathNumbers

KEYS = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 3) | st.none() | st.tuples(st.integers(0, 3)))


@drawn(st.lists(KEYS))
def test_equal_keys_and_only_they_have_equal_blocks(keys):
    numbers = PathNumbers()
    blocks = [numbers.block(*key) for key in keys]
    assert all(
        (a == b) == (x == y)
        for a, x in zip(keys, blocks, strict=True)
        for b, y in zip(keys, blocks, strict=True)
    )


def test_a_block_has_room_for_all_its_leaves():
    block = PathNumbers().block("x")
    assert block % LEAVES == 0
    assert 0 < block <= (1 << 64) - LEAVES


def test_a_block_has_room_for_more_leaves_than_a_chat_has_messages():
    assert LEAVES > CAP + 1


def test_nobody_can_tell_a_number_beforehand():
    assert PathNumbers().block("x") != PathNumbers().block("x")


@pytest.fixture
def given(monkeypatch):
    """Let these be the hashes: the block's and the owner's."""

    def give(*hashes):
        left = iter(hashes)
        monkeypatch.setattr(identity_module, "_hashes", lambda _secret, _data: next(left))

    return give


def test_the_hashes_differ_with_data_secret_and_each_other():
    made = [identity_module._hashes(secret, data) for secret in (b"a", b"b") for data in (b"", b"x")]
    assert len({each for pair in made for each in pair}) == 8


def test_a_number_that_was_given_is_not_given_to_another(given):
    given((LEAVES, 1), (LEAVES, 2), (2 * LEAVES, 3), (LEAVES, 1))
    numbers = PathNumbers()
    assert [numbers.block(name) for name in "aba"] == [LEAVES, 2 * LEAVES, LEAVES]


def test_zero_is_never_given(given):
    given((1, 5), (LEAVES, 5))
    assert PathNumbers().block("x") == LEAVES
