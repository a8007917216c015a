"""The model card of a trained model: what it is, how it was trained, and its judge score."""

import re
from dataclasses import dataclass

import msgspec
from huggingface_hub import ModelCard, ModelCardData

from node_client.site import Site
from swarm_protocol.version import CLIENT_VERSION

TAGS = ["reinforcement-learning", "grpo", "murmuration"]
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#])")
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_TEMPLATE = """---
{{ card_data }}
---

# {{ title }}

{{ base_model }}, trained further with reinforcement learning (GRPO) on questions whose
answers a program can check, by `swarm-node` {{ version }}. {{ method }}

| | |
|---|---|
{% for label, value in rows -%}
| {{ label }} | {{ value }} |
{% endfor %}
In training every question came with this system prompt:

{{ system_prompt }}

License and limits are those of the base model.
"""


class JudgeScore(msgspec.Struct, frozen=True):
    """A node's judge score in its season, as NodeStanding has it.

    `score` is from 0 to 1, and `interval` its 95 % interval, None if it is not known. `n` is the
    number of questions that count for the node, in the `rounds` rounds in which it was scored.
    """

    score: float
    interval: tuple[float, float] | None
    n: int
    rounds: int


@dataclass(frozen=True)
class ModelOrigin:
    """Where a model comes from: its base model, and how it was trained.

    `season` is empty if it is not known. `judged` is the node's judge score in its season; None if
    it is not known. For training without a coordinator, `site` and `judged` are None and `node` is
    empty.
    """

    base_model: str
    step: int
    arm: str
    season: str
    system_prompt: str
    site: Site | None = None
    node: str = ""
    judged: JudgeScore | None = None


def write_card(origin: ModelOrigin, *, title: str) -> str:
    """Return the text of a model folder's README.md, with the Hugging Face Hub's metadata block.

    Names of models, nodes and seasons come from others, so Markdown in them is escaped.
    """
    rows = [("base model", _escape(origin.base_model)), ("training steps", f"{origin.step:,}")]
    if origin.site is None:
        rows.append(("trained", "alone, without a swarm"))
    else:
        rows += _rows_of_swarm(origin, origin.site)
    is_hub_name = _HUB_NAME.fullmatch(origin.base_model)
    data = ModelCardData(
        base_model=origin.base_model if is_hub_name else None,
        library_name="transformers",
        pipeline_tag="text-generation",
        tags=TAGS,
    )
    card = ModelCard.from_template(
        data,
        template_str=_TEMPLATE,
        title=_escape(title),
        base_model=_escape(origin.base_model),
        version=CLIENT_VERSION,
        method=_method(origin),
        rows=rows,
        system_prompt=_indent(origin.system_prompt),
    )
    return f"{card}\n"


def _method(origin: ModelOrigin) -> str:
    if origin.arm != "swarm" or origin.site is None:
        return "It was trained on its own rollouts only."
    return (
        "It was trained on its own rollouts and on those of other nodes: Swarm sAmpling Policy "
        "Optimization, [arXiv 2509.08721](https://arxiv.org/abs/2509.08721)."
    )


def _rows_of_swarm(origin: ModelOrigin, site: Site) -> list[tuple[str, str]]:
    page = f"[{_escape(origin.node)}](<{site.page(origin.node)}>)"
    rows = [
        ("swarm", f"<{site.base}>"),
        ("node", page if origin.node else "unknown"),
        ("season", _escape(origin.season) or "unknown"),
        ("arm", origin.arm),
    ]
    judged = origin.judged
    if judged is None:
        return [*rows, ("judge score", "not known when this card was written")]
    interval = ""
    if judged.interval is not None:
        low, high = judged.interval
        interval = f", 95 % interval {low:.3f} to {high:.3f}"
    score = f"{judged.score:.3f}{interval}, n = {judged.n:,} questions"
    return [*rows, ("judge score of the node", score), ("judge rounds", f"{judged.rounds:,}")]


def _escape(text: str) -> str:
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return _MARKDOWN.sub(r"\\\1", line)


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in (text or "(none)").splitlines())
