"""The harnesses, by name. A new one is a package and a row here."""

from agents9core.chat.decoder import ChatFormat
from agents9core.harness.base import Harness
from agents9core.harness.claude import chat as claude_chat
from agents9core.harness.claude import finder as claude_finder
from agents9core.harness.claude import process as claude_process
from agents9core.harness.claude import store as claude_store
from agents9core.harness.codex import chat as codex_chat
from agents9core.harness.codex import finder as codex_finder
from agents9core.harness.codex import process as codex_process
from agents9core.harness.dsh import chat as dsh_chat
from agents9core.harness.dsh import finder as dsh_finder
from agents9core.harness.dsh import process as dsh_process
from agents9core.harness.hermes import chat as hermes_chat
from agents9core.harness.hermes import finder as hermes_finder
from agents9core.harness.hermes import process as hermes_process
from agents9core.harness.omp import chat as omp_chat
from agents9core.harness.omp import finder as omp_finder
from agents9core.harness.omp import process as omp_process
from agents9core.harness.pi import finder as pi_finder
from agents9core.harness.pi_files import store as omp_store

HARNESSES: dict[str, Harness] = {
    harness.name: harness
    for harness in (
        Harness(
            "claude",
            "CLAUDE_CONFIG_DIR",
            ".claude",
            claude_process.matches,
            claude_finder.Claude,
            may_show=claude_finder.may_show,
            chat_format=ChatFormat(claude_chat.read, claude_chat.TITLES),
            subagent_format=ChatFormat(claude_chat.read_subagent),
            side_chain=claude_chat.SideChain,
            stores=(("projects",),),
            store_files=claude_store.FILES,
            skills=(("skills",),),
        ),
        Harness(
            "codex",
            "CODEX_HOME",
            ".codex",
            codex_process.matches,
            codex_finder.Codex,
            writes_below=codex_finder.writes_below,
            may_show=codex_finder.may_show,
            chat_format=ChatFormat(codex_chat.read, codex_chat.TITLES),
            subagent_format=ChatFormat(codex_chat.read),
            stores=(("sessions",), ("archived_sessions",)),
            store_files=("*.jsonl", "*.jsonl.zst", "rollout-*.json"),
            skills=(("skills",), ("skills", ".system")),
        ),
        Harness(
            "omp",
            None,
            ".omp",
            omp_process.matches,
            omp_finder.Omp,
            chat_format=ChatFormat(omp_chat.read),
            subagent_format=ChatFormat(omp_chat.read),
            stores=omp_store.STORES,
            store_files=("*.jsonl", "*/[0-9]*T*Z_*/*.md", "*/[0-9]*T*Z_*/*.log", "*/[0-9]*T*Z_*/*.txt"),
            skills=(("agent", "skills"), ("agent", "managed-skills"), ("skills",), ("managed-skills",)),
            homes=omp_process.homes,
        ),
        Harness(
            "pi",
            None,
            ".pi",
            pi_finder.owns,
            pi_finder.Pi,
            chat_format=ChatFormat(omp_chat.read, omp_chat.TITLES),
            stores=omp_store.STORES,
            store_files=("*.jsonl",),
            skills=(("agent", "skills"), ("skills",)),
            homes=pi_finder.homes,
        ),
        Harness(
            "dsh",
            "DSH_HOME",
            ".dsh",
            dsh_process.matches,
            dsh_finder.Dsh,
            chat_format=ChatFormat(dsh_chat.read, dsh_chat.TITLES),
            stores=(("sessions",),),
            store_files=("*.jsonl", "*.jsonl.zstd", "*/session.lock"),
            skills=(("skills",),),
        ),
        Harness(
            "hermes",
            "HERMES_HOME",
            ".hermes",
            hermes_process.matches,
            hermes_finder.Hermes,
            chat_format=ChatFormat(hermes_chat.read),
            subagent_format=ChatFormat(hermes_chat.read),
            skills=(("skills",),),
        ),
    )
}
"""By name, in the order in which the tree lists them."""
