"""The demo bases: tiny Qwen2 models, trained from scratch in some minutes on one CPU core.

The folder `base_models/` has four of them, made by `swarm-node make-model`, so that a demo can
start at once. `tiny-rare` and `small-rare` seldom answer in the rewarded format: a node alone then
finds little to learn from, and sharing matters (docs/lab.md). The other bases are for the lab and
are made on demand: `thinker`, which writes worked solutions (`demo.teacher`), and bases with other
shares of answers in answer tags. The same command on the same machine writes the same files: a
base's tasks are always the same, and its initial weights and its batches follow from the seed.
"""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from node_client.model.demo.teacher import WritingHabits, work_out, work_through
from node_client.model.demo.tokenizer import build_tokenizer
from node_client.model.demo.warmup import WarmUpConfig, WarmUpExample, warm_up
from node_client.model.policy import Policy
from swarm_protocol.messages import TaskChoice
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.keyspace import Part
from swarm_tasks.starter import STARTER_SEASON_SEED, STARTER_TASKS
from swarm_tasks.verifier import Verifier

RECIPE = "recipe.json"
EXAMPLES_PER_DATASET = 10_000


@dataclass(frozen=True)
class Base:
    """The shape of a demo base and how it is warmed up."""

    hidden_size: int
    layers: int
    heads: int
    warm_up: WarmUpConfig


_TINY = Base(
    hidden_size=64, layers=3, heads=4, warm_up=WarmUpConfig(steps=1500, learning_rate=3e-3)
)
_SMALL = Base(
    hidden_size=96, layers=4, heads=6, warm_up=WarmUpConfig(steps=800, learning_rate=2e-3)
)
# So few answers in the rewarded format that at first most own rollouts are not informative.
_RARE = 0.01


def _with_tagged(base: Base, share: float) -> Base:
    return replace(base, warm_up=replace(base.warm_up, tagged_share=share))


@dataclass(frozen=True)
class ThinkingBase(Base):
    """A base whose warm-up includes worked solutions to sums, written with the habits `manner`."""

    manner: WritingHabits  # a key of the recipe


# Sums of single digits are hard only because of their length: long solutions go wrong, and checking
# helps. Words are spelled backward without working, as code beside mathematics in SRPO
# (arXiv 2504.14286).
THINKER_TASKS: tuple[TaskChoice, ...] = (
    TaskChoice(
        dataset="chain_sum",
        config={"min_terms": 2, "max_terms": 4, "min_digits": 1, "max_digits": 1},
        weight=2.0,
    ),
    TaskChoice(dataset="spell_backward", config={"min_word_len": 3, "max_word_len": 4}, weight=1.0),
)
BASES = {
    "tiny": _TINY,
    "small": _SMALL,
    "tiny-rare": _with_tagged(_TINY, _RARE),
    "small-rare": _with_tagged(_SMALL, _RARE),
    "tiny-tagged-0.02": _with_tagged(_TINY, 0.02),
    "tiny-tagged-0.005": _with_tagged(_TINY, 0.005),
    "thinker": ThinkingBase(
        hidden_size=64,
        layers=2,
        heads=2,
        warm_up=WarmUpConfig(steps=1500, batch_size=32, learning_rate=5e-3, tagged_share=0.3),
        manner=WritingHabits(),
    ),
}


def make(
    name: str,
    out: Path,
    *,
    verifier: Verifier,
    seed: int = 0,
    on_step: Callable[[int, int], None] = lambda done, total: None,
) -> Path:
    """Make one of the `BASES` in the folder `out` and return the folder.

    Does nothing if the folder's recipe file equals `describe_recipe` for this base and seed.
    `on_step` is called with the numbers of finished and total steps. Raises KeyError for an unknown
    name and RefusedError when the verifier fails.
    """
    base = BASES[name]
    recipe = describe_recipe(name, seed=seed)
    written = out / RECIPE
    if written.is_file() and written.read_text() == recipe:
        return out
    examples = draw_examples(name, verifier, per_dataset=EXAMPLES_PER_DATASET)
    model = build_model(base, seed=seed)
    policy = Policy(model=model, tokenizer=build_tokenizer(), name=name)
    warm_up(policy, examples, config=base.warm_up, seed=seed, on_step=on_step)
    # Halves the download; the rounding is far smaller than the remaining loss.
    model.half()  # type: ignore[no-untyped-call]
    policy.save(out)
    for path in out.iterdir():
        path.chmod(0o644)  # the weights are written readable by their owner only
    written.write_text(recipe)
    return out


def describe_recipe(name: str, *, seed: int) -> str:
    """Return as JSON what identifies a base: name, seed, generator, tasks and settings."""
    mix = {choice.dataset: choice.config for choice in tasks_of(name)}
    recipe = {"name": name, "seed": seed, "generator": GENERATOR, "tasks": mix}
    return json.dumps(recipe | asdict(BASES[name]), indent=1) + "\n"


def tasks_of(name: str) -> Sequence[TaskChoice]:
    """Return the datasets that a base is warmed up on, with configurations and weights."""
    return THINKER_TASKS if name == "thinker" else STARTER_TASKS


def draw_examples(name: str, verifier: Verifier, *, per_dataset: int) -> list[WarmUpExample]:
    """Return warm-up examples of a base: answered tasks from the training part of the keyspace.

    The answers are right, except that the worked solutions of a `ThinkingBase` contain deliberate
    slips (`WritingHabits`), some of which lead to wrong answers. The number of examples of a
    dataset is `per_dataset` times its weight, rounded down. Raises RefusedError when the verifier
    fails.
    """
    base = BASES[name]
    rng = random.Random(0)
    examples = []
    for choice in tasks_of(name):
        for counter in range(int(choice.weight * per_dataset)):
            task = verifier.draw(
                key=b"warm-up of the demo bases",
                part=Part.TRAINING,
                dataset=choice.dataset,
                config=choice.config,
                seed=STARTER_SEASON_SEED,
                counter=counter,
            )
            if isinstance(base, ThinkingBase) and choice.dataset == "chain_sum":
                working, result = work_through(task.question, base.manner, rng=rng)
                examples.append(WarmUpExample(task.question, answer=str(result), working=working))
            else:
                answer = work_out(choice.dataset, task.question)
                examples.append(WarmUpExample(task.question, answer=answer))
    return examples


def build_model(base: Base, *, seed: int) -> Qwen2ForCausalLM:
    """Return an untrained model of a base's shape. Seeds torch's global generator."""
    tokenizer = build_tokenizer()
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=base.hidden_size,
        intermediate_size=3 * base.hidden_size,
        num_hidden_layers=base.layers,
        num_attention_heads=base.heads,
        num_key_value_heads=base.heads,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    torch.manual_seed(seed)
    return Qwen2ForCausalLM(config)
