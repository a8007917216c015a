"""Models with random weights for the benchmarks of a node's step."""

import re
from pathlib import Path

import torch
from tokenizers import AddedToken
from transformers import PreTrainedTokenizerBase, Qwen2Config, Qwen2ForCausalLM

from bench.node.sizes import Size
from node_client.model.demo.tokenizer import PHRASES, build_tokenizer
from swarm_protocol.prompts import SYSTEM_PROMPT

CHAT_TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}<assistant>"


def build_model(size: Size, folder: Path) -> Path:
    """Write a Qwen2 model of the size with random weights to `folder`, and return `folder`.

    Also writes a tokenizer with a chat template.
    """
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
    """Return a tokenizer with a token for each word of the prompts, so that prompts are short."""
    tokenizer = build_tokenizer()
    words = sorted(set(re.findall(r" ?[A-Za-z]{2,}", " ".join([SYSTEM_PROMPT, *PHRASES]))))
    tokenizer.add_tokens([AddedToken(word, normalized=False) for word in words])
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer
