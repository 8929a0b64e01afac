"""Which of the forms that we have a client likes best (RFC 9110 section 12.5.1). Pure."""

import re
from collections.abc import Sequence
from typing import NamedTuple

_RANGE = r"\s*(?P<type>[\w!#$%&'*+.^`|~-]+)/(?P<subtype>[\w!#$%&'*+.^`|~-]+)\s*(?P<parameters>(?:;.*)?)"
_WEIGHT = r";\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*(?:;|$)"


class _Wish(NamedTuple):
    media_range: str
    weight: float
    precision: int
    """2 names a type, 1 any of a kind (`text/*`), 0 anything."""
    rank: int
    """Higher is nearer to the front of the header."""


def preferred(accept: str | None, offers: Sequence[str]) -> str:
    """Return the offer that *accept* weighs most; the first offer where it says nothing that helps.

    Offers of one weight: one that is named goes before one that a wildcard covers, then the one named first.
    """
    if accept is None or accept.strip() == "*/*":
        return offers[0]
    wishes = _wishes(accept)
    best, best_score = offers[0], (0.0, 0, 0)
    for offer in offers:
        score = _score(offer, wishes)
        if score > best_score:
            best, best_score = offer, score
    return best


def _wishes(accept: str) -> list[_Wish]:
    wishes = []
    for rank, part in enumerate(accept.split(",")):
        if match := re.fullmatch(_RANGE, part, re.ASCII):
            kind, subtype, parameters = match.groups()
            weight = re.search(_WEIGHT, parameters, re.ASCII | re.IGNORECASE)
            precision = 0 if kind == "*" else 1 if subtype == "*" else 2
            wishes.append(
                _Wish(f"{kind}/{subtype}".lower(), float(weight[1]) if weight else 1.0, precision, -rank)
            )
    return wishes


def _score(offer: str, wishes: list[_Wish]) -> tuple[float, int, int]:
    """Return the weight of the most precise range that covers *offer*; 0 if it is not wanted."""
    ranges = (offer, offer.partition("/")[0] + "/*", "*/*")
    matching = [wish for wish in wishes if wish.media_range in ranges]
    if not matching:
        return (0.0, 0, 0)
    wish = max(matching, key=lambda wish: (wish.precision, wish.rank))
    return (wish.weight, wish.precision, wish.rank if wish.precision else 0) if wish.weight else (0.0, 0, 0)
