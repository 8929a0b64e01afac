"""Who has a worker next."""

from types import SimpleNamespace

from davserver.turns import BEGIN_IN_A_ROW, Turns


def new(number):
    return SimpleNamespace(request=None, number=number)


def going(number):
    return SimpleNamespace(request=object(), number=number)


def order(turns):
    return [turns.get_nowait().number for _ in range(turns.qsize())]


def test_who_begins_goes_before_who_goes_on():
    turns = Turns()
    for item in (going("a"), going("b"), new(1), going("c"), new(2)):
        turns.put(item)
    assert order(turns) == [1, 2, "a", "b", "c"]


def test_who_goes_on_has_a_turn_between_many_that_begin():
    turns = Turns()
    for number in range(2 * BEGIN_IN_A_ROW):
        turns.put(new(number))
    turns.put(going("a"))
    assert order(turns).index("a") == BEGIN_IN_A_ROW


def test_what_is_no_connection_waits_with_those_that_begin():
    turns = Turns()
    turns.put(going("a"))
    turns.put(None)
    assert turns.get_nowait() is None
