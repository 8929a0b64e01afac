"""The harnesses, by name. A new one is a package and a row here."""

from agents9core.decoder import ChatFormat
from agents9core.harness import (
    claude,
    claude_chat,
    claude_process,
    codex,
    codex_argv,
    codex_chat,
    dsh,
    dsh_chat,
    dsh_process,
    hermes,
    hermes_chat,
    hermes_process,
    omp,
    omp_chat,
    omp_process,
    omp_store,
    pi,
)
from agents9core.harness.base import Harness

HARNESSES: dict[str, Harness] = {
    harness.name: harness
    for harness in (
        Harness(
            "claude",
            "CLAUDE_CONFIG_DIR",
            ".claude",
            claude_process.matches,
            claude.Claude,
            may_show=claude.may_show,
            chat_format=ChatFormat(claude_chat.read, claude_chat.TITLES),
            subagent_format=ChatFormat(claude_chat.read_subagent),
            side_chain=claude_chat.SideChain,
            stores=(("projects",),),
            skills=(("skills",),),
        ),
        Harness(
            "codex",
            "CODEX_HOME",
            ".codex",
            codex_argv.matches,
            codex.Codex,
            writes_below=codex.writes_below,
            may_show=codex.may_show,
            chat_format=ChatFormat(codex_chat.read),
            subagent_format=ChatFormat(codex_chat.read),
            stores=(("sessions",), ("archived_sessions",)),
            skills=(("skills",), ("skills", ".system")),
        ),
        Harness(
            "omp",
            None,
            ".omp",
            omp_process.matches,
            omp.Omp,
            chat_format=ChatFormat(omp_chat.read),
            subagent_format=ChatFormat(omp_chat.read),
            stores=omp_store.STORES,
            skills=(("agent", "skills"), ("agent", "managed-skills"), ("skills",), ("managed-skills",)),
            homes=omp_process.homes,
        ),
        Harness(
            "pi",
            None,
            ".pi",
            pi.owns,
            pi.Pi,
            chat_format=ChatFormat(omp_chat.read, omp_chat.TITLES),
            stores=omp_store.STORES,
            skills=(("agent", "skills"), ("skills",)),
            homes=pi.homes,
        ),
        Harness(
            "dsh",
            "DSH_HOME",
            ".dsh",
            dsh_process.matches,
            dsh.Dsh,
            chat_format=ChatFormat(dsh_chat.read, dsh_chat.TITLES),
            stores=(("sessions",),),
            skills=(("skills",),),
        ),
        Harness(
            "hermes",
            "HERMES_HOME",
            ".hermes",
            hermes_process.matches,
            hermes.Hermes,
            chat_format=ChatFormat(hermes_chat.read),
            subagent_format=ChatFormat(hermes_chat.read),
            skills=(("skills",),),
        ),
    )
}
"""By name, in the order in which the tree lists them."""
