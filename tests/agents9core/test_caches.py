"""Caches have a limit of entries and a budget of bytes."""

import pytest

from agents9core.caches import LRU, TTLCache


@pytest.mark.parametrize("shape", [lambda text: text, lambda text: (1, (text,)), lambda text: {"a": [text]}])
def test_what_is_long_takes_no_more_than_the_budget(shape):
    cache = LRU(1000, 1 << 20)
    for number in range(100):
        cache[number] = shape(chr(97 + number % 20) * 100_000)
    assert cache.nbytes <= 1 << 20
    assert 8 <= len(cache) <= 10
    assert max(cache) == 99


def test_long_keys_count():
    cache = LRU(1000, 1 << 20)
    for number in range(100):
        cache[f"{number}" * 50_000] = None
    assert len(cache) < 25


def test_what_is_larger_than_the_budget_is_not_remembered():
    cache = LRU(10, 1000)
    cache["small"] = "x"
    cache["large"] = "x" * 2000
    assert not cache
    assert cache.nbytes == 0


def test_what_is_put_again_counts_once():
    cache = LRU(10, 1 << 20)
    for _ in range(100):
        cache["one"] = "x" * 100_000
    assert list(cache) == ["one"]


def test_places_have_the_same_budget():
    cache = TTLCache()
    cache.put({number: f"{number}" + "x" * (1 << 20) for number in range(100)})
    assert cache._found.nbytes <= 32 << 20
