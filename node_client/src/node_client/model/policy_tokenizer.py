"""A policy's tokenizer: prompts and completions to tokens and back."""

import hashlib
import json
from functools import lru_cache
from typing import Any, cast

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from node_client.model.prompts import write_prompt
from swarm_protocol.messages import FinishReason

# A question is encoded to generate answers, and again to train on them.
_MAX_CACHED_PROMPTS = 256
# A text with everything that tokenizers treat differently: outer spaces, tags, signs, scripts.
_PROBE = " Is 7 x 6 = 42? <answer> 42</answer>,  yes!\n\tJa, é 数 🙂 "


class PolicyTokenizer:
    """A tokenizer, and the tokens that end a completion of its model.

    `ends` has the ids of these tokens, and `pad_id` is the id for padding. `fingerprint` is a hash
    of vocabulary and chat template: tokenizers with the same fingerprint are assumed to give the
    same tokens.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel) -> None:
        self.tokenizer = tokenizer
        self.ends = frozenset(_eos_ids(model, tokenizer))
        self.fingerprint = _fingerprint(tokenizer)
        self._backend = _find_backend(tokenizer)
        self._eos_id = cast(int, tokenizer.eos_token_id)  # a slow look-up in transformers
        pad = tokenizer.pad_token_id
        # Masks tell padding from an end-of-sequence token.
        self.pad_id = self._eos_id if pad is None else cast(int, pad)
        self._special_ids = frozenset(tokenizer.all_special_ids)
        self._prompt_ids = lru_cache(maxsize=_MAX_CACHED_PROMPTS)(self._encode_prompt)

    def prompt_ids(self, question: str, *, system_prompt: str) -> list[int]:
        """Return the tokens of a question as a prompt in the model's own format."""
        return list(self._prompt_ids(question, system_prompt))

    def completion_ids(self, text: str, finish_reason: FinishReason) -> list[int] | None:
        """Return the tokens of `text`, a completion of any node, with EOS if it ended with `stop`.

        Returns None when decoding the tokens does not give `text`, or when some tokens are special
        tokens, which the text of another node must not be able to insert. Also returns None when
        the result would be empty.
        """
        ids = self.encode(text)
        if self.decode(ids) != text or not self._special_ids.isdisjoint(ids):
            return None
        if finish_reason == "stop":
            return [*ids, self._eos_id]
        return ids or None

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text; no special tokens are put around it."""
        if self._backend is not None:
            return cast(list[int], self._backend.encode(text, add_special_tokens=False).ids)
        return cast(list[int], self.tokenizer.encode(text, add_special_tokens=False))

    def decode(self, ids: list[int]) -> str:
        """Return the text of tokens; special tokens are left out."""
        if self._backend is not None:
            return cast(str, self._backend.decode(ids, skip_special_tokens=True))
        return cast(
            str,
            self.tokenizer.decode(
                ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
            ),
        )

    def _encode_prompt(self, question: str, system_prompt: str) -> tuple[int, ...]:
        return tuple(
            self.encode(write_prompt(self.tokenizer, question, system_prompt=system_prompt))
        )


def _find_backend(tokenizer: PreTrainedTokenizerBase) -> Any:
    """Return the Rust tokenizer that `tokenizer` wraps, or None if there is none.

    Also None if it encodes or decodes _PROBE differently from `tokenizer`. For short texts the Rust
    tokenizer takes half the time that its wrapper in transformers takes.
    """
    if not tokenizer.is_fast:
        return None
    backend = tokenizer.backend_tokenizer
    ids = tokenizer.encode(_PROBE, add_special_tokens=False)
    text = tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    same_ids = backend.encode(_PROBE, add_special_tokens=False).ids == ids
    return backend if same_ids and backend.decode(ids, skip_special_tokens=True) == text else None


def _eos_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """Return the ids of all tokens with which the tokenizer or the model ends a completion."""
    configured = getattr(model.generation_config, "eos_token_id", None)
    more = [configured] if isinstance(configured, int) else configured or []
    return {tokenizer.eos_token_id, *more}


def _fingerprint(tokenizer: PreTrainedTokenizerBase) -> str:
    """Return a short hash of a tokenizer's vocabulary and chat template."""
    content = [sorted(tokenizer.get_vocab().items()), tokenizer.chat_template]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
