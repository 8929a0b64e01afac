"""Looking before sleeping: often for who is quick, ever less for who is slow."""

from davserver.server import looks as looks_module
from davserver.server.looks import LOOKS, MOST_SLEPT_FOR, Looks


def test_what_is_there_is_found_at_once():
    asked = iter(["it", "more"])
    assert Looks().find(lambda: next(asked)) == "it"


def test_what_comes_while_it_is_looked_for_is_found():
    asked = iter([None] * (LOOKS - 1) + [b""])
    assert Looks().find(lambda: next(asked)) == b""


def test_it_is_looked_for_so_many_times_and_then_slept_for():
    asked = []
    assert Looks().find(lambda: asked.append(1)) is None
    assert len(asked) == LOOKS


def test_who_is_slow_is_looked_for_ever_less(monkeypatch):
    monkeypatch.setattr(looks_module, "LOOKS", 1)
    looks, looked_at = Looks(), []
    for number in range(300):
        assert looks.find(lambda: looked_at.append(number)) is None  # noqa: B023 - it is called at once
    assert looked_at == [0, 2, 6, 14, 30, 62, 126, 190, 254]


def test_who_is_quick_again_is_looked_for_each_time():
    looks = Looks()
    for _ in range(10):
        assert looks.find(lambda: None) is None
    for _ in range(MOST_SLEPT_FOR):
        looks.find(lambda: "it")
    assert [looks.find(lambda: "it") for _ in range(10)] == ["it"] * 10
