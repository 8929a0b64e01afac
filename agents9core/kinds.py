"""What a message is called: `user`, `assistant`, a tool's name, a tool's name and `-result`.

Pure. Source of the rules: DESIGN section 4.
"""

import re

from agents9core.record import CALL, RESULT, Message

FIXED = ("user", "assistant", "thinking", "system", "agent", CALL, RESULT)
TOOLS = 255
"""Distinct tool names in a chat; calls of the next are `tool-call`."""
CALLS = 256
"""How many of the last calls a result may answer."""

_NAME_BYTES = 200
_CALL_BYTES = 300
_LONGEST = 48
_ODD = re.compile("[^A-Za-z0-9_.-]")
_LOWER = str.maketrans({chr(upper): chr(upper + 32) for upper in range(ord("A"), ord("Z") + 1)})
_TAKEN = {*FIXED, "", ".", ".."}


def tool_kind(tool: str) -> str:
    """Return the kind of a call of *tool*; `tool-call` where its name would read as another kind."""
    kind = _ODD.sub("-", tool).translate(_LOWER)[:_LONGEST]
    return CALL if kind in _TAKEN or kind.endswith("-result") else kind


class Kinds:
    """The kinds of one chat, numbered, and the calls that wait for their results."""

    def __init__(self) -> None:
        self.names = list(FIXED)
        self.numbers = {name: number for number, name in enumerate(FIXED)}
        self._calls: dict[str, tuple[int, str]] = {}
        self._count = 0

    @property
    def nbytes(self) -> int:
        """Bytes of memory it holds, near enough."""
        return len(self.names) * _NAME_BYTES + len(self._calls) * _CALL_BYTES

    def number(self, message: Message) -> int:
        """Return the number of the message's kind, and remember it when it is a call."""
        if message.role == CALL:
            kind = self._tool(message.tool)
            self._remember(message.call, kind)
            return self.numbers[kind]
        if message.role == RESULT:
            return self.numbers[self._answered(message.call)]
        return self.numbers[message.role]

    def _tool(self, tool: str) -> str:
        kind = tool_kind(tool)
        if kind not in self.numbers:
            if len(self.names) - len(FIXED) >= 2 * TOOLS:
                return CALL
            for name in (kind, f"{kind}-result"):
                self.numbers[name] = len(self.names)
                self.names.append(name)
        return kind

    def _remember(self, call: str | None, kind: str) -> None:
        self._count += 1
        if call is None:
            return
        self._calls.pop(call, None)
        self._calls[call] = (self._count, kind)
        if len(self._calls) > CALLS:
            del self._calls[next(iter(self._calls))]

    def _answered(self, call: str | None) -> str:
        number, kind = self._calls.get(call, (0, CALL)) if call is not None else (0, CALL)
        if kind == CALL or number <= self._count - CALLS:
            return RESULT
        return f"{kind}-result"
