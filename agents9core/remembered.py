"""What is worth remembering of what was looked at, up to so many of it."""

from collections import OrderedDict
from typing import TypeVar

_MOST = 4096

Key = TypeVar("Key")
Value = TypeVar("Value")


class Remembered(OrderedDict[Key, Value]):
    """A dictionary that forgets what was put in longest ago. Not for several threads at once."""

    def __init__(self, most: int = _MOST) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: Key, value: Value) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)
