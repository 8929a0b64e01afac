"""Versions, and how each dialect says an error."""

import errno

import pytest

from agents9core import errors as tree_errors
from davserver.ninep import errors as ninep_errors
from davserver.ninep import messages as m
from davserver.ninep.dialect import DIALECTS, ENAMES, LINUX, PLAIN, UNIX, UNKNOWN, ename, negotiate
from davserver.ninep.session import HANDLERS, REQUESTS
from davserver.ninep.wire import CODECS

from .conftest import V9FS_ERRNO


@pytest.mark.parametrize(
    ("asked", "dialect"),
    [
        ("9P2000", PLAIN),
        ("9P2000.u", UNIX),
        ("9P2000.L", LINUX),
        ("9P2000.x", PLAIN),
        ("9P2000.", PLAIN),
        ("9P2000.L.1", PLAIN),
        ("9P2000.l", PLAIN),
        ("9P2000.\n", PLAIN),
        ("9P2001", PLAIN),
        ("9P3000.L", PLAIN),
        ("9P1999", UNKNOWN),
        ("9P" + "9" * 5000, UNKNOWN),
        ("9P", UNKNOWN),
        ("9P\u0662\u0660\u0660\u0660", UNKNOWN),
        ("9p2000", UNKNOWN),
        ("9P2000L", UNKNOWN),
        (" 9P2000", UNKNOWN),
        ("unknown", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_negotiate(asked, dialect):
    assert negotiate(asked) is dialect


def subclasses(cls):
    return {cls, *(deeper for child in cls.__subclasses__() for deeper in subclasses(child))}


@pytest.mark.parametrize("cls", sorted(subclasses(ninep_errors.ProtocolError), key=lambda cls: cls.__name__))
def test_linux_reads_the_phrase_of_a_protocol_error_as_its_number(cls):
    assert V9FS_ERRNO[cls.ename] == cls.errno


@pytest.mark.parametrize("number", sorted(set(ENAMES) - {errno.ESTALE}))
def test_linux_reads_the_phrase_of_a_tree_error_as_its_number(number):
    assert V9FS_ERRNO[ENAMES[number]] == number


def test_every_error_of_the_tree_has_a_phrase():
    core = {cls for cls in vars(tree_errors).values() if isinstance(cls, type)}
    assert {cls.errno for cls in core if issubclass(cls, tree_errors.TreeError)} <= set(ENAMES)


def test_a_number_without_a_phrase_is_an_io_error():
    class Odd(tree_errors.TreeError):
        errno = errno.EXDEV

    assert ename(Odd()) == "i/o error"


def test_the_shape_of_an_error():
    gone = tree_errors.Gone("x")
    assert PLAIN.error(5, gone) == m.Rerror(5, "file has been removed")
    assert UNIX.error(5, gone) == m.RerrorU(5, "file has been removed", errno.ESTALE)
    assert LINUX.error(5, gone) == m.Rlerror(5, errno.ESTALE)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.version)
def test_no_number_stands_for_two_requests(dialect):
    assert len(REQUESTS[dialect.version]) == len(dialect.requests)


def test_every_request_has_a_handler_and_a_dialect():
    requests = {cls for cls in CODECS if cls.__name__.startswith("T")}
    assert set(HANDLERS) == requests
    assert {request for dialect in DIALECTS.values() for request in dialect.requests} == requests


def test_requests_are_even_and_replies_odd():
    assert all((codec.number % 2 == 0) == cls.__name__.startswith("T") for cls, codec in CODECS.items())
