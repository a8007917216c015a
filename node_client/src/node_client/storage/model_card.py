"""The card of a trained model: what it is, where and how it was trained, how it was judged. Pure.

The metadata block is the Hugging Face Hub's (huggingface_hub's ModelCardData).
"""

import re
from dataclasses import dataclass

from huggingface_hub import ModelCardData

from swarm_protocol.version import CLIENT_VERSION

TAGS = ["reinforcement-learning", "grpo", "murmuration"]
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#])")
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class Rating:
    """What the judge found of a node in its season; score and 95 % interval are fractions."""

    score: float
    interval: tuple[float, float] | None
    n: int
    rounds: int


@dataclass(frozen=True)
class Provenance:
    """Where a model comes from. `site` and `node` are empty for training without a swarm."""

    base_model: str
    step: int
    arm: str
    season: str
    system_prompt: str
    site: str = ""
    node: str = ""
    page: str = ""
    rating: Rating | None = None


def write_card(origin: Provenance, *, title: str) -> str:
    """Return a README.md for a model folder.

    Names of nodes and seasons are other people's words: nothing in them is read as Markdown.
    """
    rows = [("base model", _quote(origin.base_model)), ("training steps", f"{origin.step:,}")]
    rows += _rows_of_swarm(origin) if origin.site else [("trained", "alone, without a swarm")]
    table = "\n".join(f"| {label} | {value} |" for label, value in rows)
    return f"""---
{_metadata(origin)}
---

# {_quote(title)}

{_quote(origin.base_model)}, trained further with reinforcement learning (GRPO) on questions whose
answers a program can check, by `swarm-node` {CLIENT_VERSION}. {_method(origin)}

| | |
|---|---|
{table}

In training every question came with this system prompt:

{_indent(origin.system_prompt)}

License and limits are those of the base model.
"""


def _metadata(origin: Provenance) -> str:
    known = _HUB_NAME.fullmatch(origin.base_model)
    return ModelCardData(
        base_model=origin.base_model if known else None,
        library_name="transformers",
        pipeline_tag="text-generation",
        tags=TAGS,
    ).to_yaml()


def _method(origin: Provenance) -> str:
    if origin.arm != "swarm" or not origin.site:
        return "It was trained on its own rollouts only."
    return (
        "It was trained on its own rollouts and on those of other nodes: Swarm sAmpling Policy "
        "Optimization, [arXiv 2509.08721](https://arxiv.org/abs/2509.08721)."
    )


def _rows_of_swarm(origin: Provenance) -> list[tuple[str, str]]:
    rows = [
        ("swarm", f"<{origin.site}>"),
        ("node", f"[{_quote(origin.node)}](<{origin.page}>)" if origin.page else "unknown"),
        ("season", _quote(origin.season)),
        ("arm", origin.arm),
    ]
    rating = origin.rating
    if rating is None:
        return [*rows, ("judge score", "not known when this card was written")]
    interval = ""
    if rating.interval is not None:
        low, high = rating.interval
        interval = f", 95 % interval {low:.3f} to {high:.3f}"
    score = f"{rating.score:.3f}{interval}, n = {rating.n:,} questions"
    return [*rows, ("judge score of the node", score), ("judge rounds", f"{rating.rounds:,}")]


def _quote(text: str) -> str:
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return _MARKDOWN.sub(r"\\\1", line)


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in (text or "(none)").splitlines())
