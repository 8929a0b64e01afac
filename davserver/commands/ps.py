"""`agents9 ps`: the agents that run, a line each, read from the tree as any client reads it."""

from collections.abc import Sequence

import orjson

from agents9core.errors import TreeError
from agents9core.node import Directory, File

_FACTS = ("session", "via", "status", "waitingfor", "cwd", "title")
_FACT_BYTES = 1 << 16

Agent = dict[str, str]


def agents_of(root: Directory) -> list[Agent]:
    """Return what the fact files of each agent say: `pid`, `harness` and those facts that apply."""
    return [
        {"pid": entry.name, "harness": harness.name, **_facts(entry)}
        for harness in _directories(root.walk("active"))
        for entry in _directories(harness)
    ]


def anybody(root: Directory) -> bool:
    """Return whether any agent runs."""
    return any(harness.members() for harness in _directories(root.walk("active")))


def as_json(agents: Sequence[Agent]) -> str:
    """Return the agents as a JSON array; `pid` is a number, a fact that does not apply is absent."""
    rows = [{**agent, "pid": int(agent["pid"])} for agent in agents]
    return orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode()


def as_table(agents: Sequence[Agent]) -> str:
    """Return the agents as aligned columns, `-` for a fact that does not apply."""
    columns = ("pid", "harness", *_FACTS)
    rows = [tuple(column.upper() for column in columns)]
    rows += [tuple(agent.get(column, "-") for column in columns) for agent in agents]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _directories(node: object) -> list[Directory]:
    """Return the members that are directories, without those that ended meanwhile."""
    if not isinstance(node, Directory):
        return []
    found = []
    for row in node.members():
        try:
            member = node.walk(row.name) if row.stat.is_dir else None
        except TreeError:
            continue
        if isinstance(member, Directory):
            found.append(member)
    return found


def _facts(entry: Directory) -> Agent:
    facts = {}
    for name in _FACTS:
        try:
            file = entry.walk(name)
            if isinstance(file, File):
                facts[name] = file.open().read(0, _FACT_BYTES).decode().rstrip("\n")
        except TreeError:
            continue
    return facts
