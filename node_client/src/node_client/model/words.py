"""Text to tokens and back, as one policy's tokenizer does it."""

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from node_client.model.prompts import write_prompt
from swarm_protocol.messages import FinishReason

# A question is encoded to be answered and again to be trained on.
_PROMPTS_KEPT = 256
# A text with what tokenizers treat differently: spaces at both ends, tags, signs, other scripts.
_PROBE = " Is 7 x 6 = 42? <answer> 42</answer>,  yes!\n\tJa, é 数 🙂 "


class Words:
    """A tokenizer with what the model says of the tokens that end a completion."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel) -> None:
        self.tokenizer = tokenizer
        self.ends = frozenset(_eos_ids(model, tokenizer))
        self.fingerprint = _fingerprint(tokenizer)
        self._backend = _find_backend(tokenizer)
        self._eos_id = cast(int, tokenizer.eos_token_id)  # a slow look-up in transformers
        self._special_ids = frozenset(tokenizer.all_special_ids)
        self._prompt_ids = lru_cache(maxsize=_PROMPTS_KEPT)(self._encode_prompt)

    @property
    def pad_id(self) -> int:
        """The token that stands where nothing is; masks tell it from an end."""
        pad = self.tokenizer.pad_token_id
        return cast(int, self.tokenizer.eos_token_id if pad is None else pad)

    def prompt_ids(self, question: str, *, system_prompt: str) -> list[int]:
        """Return the tokens of a question, asked in the way that the model is used to."""
        return list(self._prompt_ids(question, system_prompt))

    def completion_ids(self, text: str, finish_reason: FinishReason) -> list[int] | None:
        """Return the tokens of somebody's completion, with EOS after a `stop`.

        None when this tokenizer cannot represent the text: decoding gives another one, or it
        contains special tokens (which text from a peer must never be able to place).
        """
        ids = self.encode(text)
        if self.decode(ids) != text or not self._special_ids.isdisjoint(ids):
            return None
        if finish_reason == "stop":
            return [*ids, self._eos_id]
        return ids or None

    def end_of(self, row: list[int]) -> int | None:
        """Return the place of a row's first end-of-sequence token, or None."""
        return next((place for place, token in enumerate(row) if token in self.ends), None)

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, without any that the tokenizer would put around it."""
        if self._backend is not None:
            return cast(list[int], self._backend.encode(text, add_special_tokens=False).ids)
        return cast(list[int], self.tokenizer.encode(text, add_special_tokens=False))

    def decode(self, ids: list[int]) -> str:
        """Return the text of tokens, without special ones."""
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

    def save(self, folder: Path) -> None:
        """Write the tokenizer into a model's folder."""
        self.tokenizer.save_pretrained(folder)


def _find_backend(tokenizer: PreTrainedTokenizerBase) -> Any:
    """Return what transformers asks in turn, where that says the same by itself, else None.

    For short texts transformers takes as long around it as it takes itself.
    """
    if not tokenizer.is_fast:
        return None
    backend = tokenizer.backend_tokenizer
    ids = tokenizer.encode(_PROBE, add_special_tokens=False)
    text = tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    same_ids = backend.encode(_PROBE, add_special_tokens=False).ids == ids
    return backend if same_ids and backend.decode(ids, skip_special_tokens=True) == text else None


def _eos_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """Return every token that ends a completion: the tokenizer's own and the model's list."""
    configured = getattr(model.generation_config, "eos_token_id", None)
    more = [configured] if isinstance(configured, int) else configured or []
    return {tokenizer.eos_token_id, *more}


def _fingerprint(tokenizer: PreTrainedTokenizerBase) -> str:
    """Return a short hash of vocabulary and chat template: equal means equal token sequences."""
    content = [sorted(tokenizer.get_vocab().items()), tokenizer.chat_template]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
