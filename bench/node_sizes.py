"""The sizes at which a node's step is measured, and their models: random weights, made here."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from tokenizers import AddedToken
from transformers import PreTrainedTokenizerBase, Qwen2Config, Qwen2ForCausalLM

from node_client.model.tokenizer import PHRASES, build_tokenizer
from swarm_protocol.prompts import SYSTEM_PROMPT

COMPLETIONS = 8
TEXT_TOKENS = 1024
# A busy machine gets so many times the turns to find quiet ones.
PATIENCE = 3
CHAT_TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}<assistant>"


@dataclass(frozen=True)
class Size:
    """A model's shape, how many prompts a step has, and how many turns of how many steps count.

    `completion_tokens` is what a completion has at most.
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
    def most_turns(self) -> int:
        """How many turns are made at most, in search of quiet ones."""
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


def build_model(size: Size, folder: Path) -> Path:
    """Write a Qwen2 of the size with random weights, and a tokenizer with a chat template."""
    tokenizer = _build_tokenizer()
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=size.vocabulary,
            hidden_size=size.hidden_size,
            intermediate_size=size.intermediate_size,
            num_hidden_layers=size.layers,
            num_attention_heads=size.heads,
            num_key_value_heads=size.key_value_heads,
            max_position_embeddings=4096,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _build_tokenizer() -> PreTrainedTokenizerBase:
    """Return a tokenizer with a token for each word of the prompts, as a pretrained model's has."""
    tokenizer = build_tokenizer()
    words = sorted(set(re.findall(r" ?[A-Za-z]{2,}", " ".join([SYSTEM_PROMPT, *PHRASES]))))
    tokenizer.add_tokens([AddedToken(word, normalized=False) for word in words])
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer
