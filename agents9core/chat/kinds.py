"""What a message is called: `user`, `assistant`, a tool's name, a tool's name and `-result`.

Pure. Source of the rules: DESIGN section 4.
"""

import re
from functools import lru_cache

from agents9core.chat.markdown import PROSE, frame
from agents9core.chat.records import CALL, RESULT, Message

FIXED = ("user", "assistant", "thinking", "system", "agent", CALL, RESULT)
PROSE_KINDS = len(PROSE)
"""The first of them, and no others, are prose."""
TOOLS = 255
"""Distinct tool names in a chat; calls of the next are `tool-call`."""
CALLS = 256
"""How many of the last calls a result may answer."""

_NAME_BYTES = 200
_CALL_BYTES = 300
_LONGEST = 48
_LONGEST_TOOL = 200
_ODD = re.compile("[^A-Za-z0-9_.-]")
_LOWER = str.maketrans({chr(upper): chr(upper + 32) for upper in range(ord("A"), ord("Z") + 1)})
_TAKEN = {*FIXED, "", ".", ".."}
_CALL, _RESULT = FIXED.index(CALL), FIXED.index(RESULT)


@lru_cache(maxsize=1024)
def tool_kind(tool: str) -> str:
    """Return the kind of a call of *tool*; `tool-call` where its name would read as another kind."""
    kind = _ODD.sub("-", tool).translate(_LOWER)[:_LONGEST]
    return CALL if kind in _TAKEN or kind.endswith("-result") else kind


class Kinds:
    """The kinds of one chat, numbered, and the calls that wait for their results."""

    def __init__(self) -> None:
        self.names = list(FIXED)
        self.frames = [frame(name) for name in FIXED]
        """Of each kind what `markdown.frame` says."""
        self.tools: list[str | None] = [None] * len(FIXED)
        """Of each kind the tool's own name, where it is a tool's."""
        self._numbers = {name: number for number, name in enumerate(FIXED)}
        self._tools: dict[str, int] = {}
        self._calls: dict[str, tuple[int, int]] = {}
        """Of each call that waits: which one it was, and the number of its kind."""
        self._count = 0

    @property
    def nbytes(self) -> int:
        """Bytes of memory it holds, near enough."""
        return len(self.names) * _NAME_BYTES + len(self._calls) * _CALL_BYTES

    def number(self, message: Message) -> int:
        """Return the number of the message's kind, and remember it when it is a call."""
        role = message.role
        if role == CALL:
            number = self._tool(message.tool[:_LONGEST_TOOL])
            self._remember(message.call, number)
            return number
        if role == RESULT:
            return self._answered(message.call)
        return self._numbers[role]

    def _tool(self, tool: str) -> int:
        number = self._tools.get(tool)
        if number is None:
            kind = tool_kind(tool)
            if not tool or len(self.names) - len(FIXED) >= 2 * TOOLS:
                return self._numbers.get(kind, _CALL)
            number = self._tools[tool] = len(self.names)
            self._numbers.setdefault(kind, number)
            both = (kind, RESULT if kind == CALL else f"{kind}-result")
            self.names += both
            self.frames += map(frame, both)
            self.tools += (tool, tool)
        return number

    def _remember(self, call: str | None, number: int) -> None:
        self._count += 1
        if call is None:
            return
        self._calls[call] = (self._count, number)
        if len(self._calls) >= 2 * CALLS:  # those that are too old go all at once: that is cheaper
            oldest = self._count - CALLS
            self._calls = {call: kept for call, kept in self._calls.items() if kept[0] > oldest}

    def _answered(self, call: str | None) -> int:
        waiting = self._calls.get(call) if call is not None else None
        if waiting is None:
            return _RESULT
        count, number = waiting
        return _RESULT if number == _CALL or count <= self._count - CALLS else number + 1
