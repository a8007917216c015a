"""The model sizes and amounts of work for which a node's step is measured."""

from dataclasses import dataclass
from typing import Literal

COMPLETIONS = 8
TEXT_TOKENS = 1024
# On a busy machine at most this many times the needed turns are made, to find quiet ones.
PATIENCE = 3


@dataclass(frozen=True)
class Size:
    """A model's shape, and the work to measure.

    A step has `prompts` prompts with COMPLETIONS completions of at most `completion_tokens` tokens.
    A turn has `steps_per_turn` steps. The first `warm_up_turns` turns are not measured. Then the
    trainer makes turns until it has made `turns` quiet ones, hardly disturbed by other processes,
    but at most `max_turns` in all.
    """

    name: str
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    key_value_heads: int
    vocabulary: int
    prompts: int
    precision: Literal["fp32", "bf16"]
    turns: int
    steps_per_turn: int
    completion_tokens: int = 32
    warm_up_turns: int = 1

    @property
    def max_turns(self) -> int:
        """The largest number of turns that a trainer makes, warm-up included, quiet or not."""
        return self.warm_up_turns + PATIENCE * self.turns


SIZES = {
    size.name: size
    for size in (
        Size("small", 128, 384, 4, 4, 4, TEXT_TOKENS, 8, "fp32", turns=6, steps_per_turn=5),
        Size("mid", 512, 1536, 8, 8, 8, TEXT_TOKENS, 8, "fp32", turns=5, steps_per_turn=1),
        # Qwen2.5-0.5B's shape.
        Size("large", 896, 4864, 24, 14, 2, 151_936, 1, "bf16", turns=4, steps_per_turn=1),
    )
}
