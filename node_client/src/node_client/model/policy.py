"""A policy: one causal language model with its tokenizer, on one device."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.modeling_layers import GradientCheckpointingLayer

from node_client.model.adapters import add_adapters, has_adapters, switched_off
from node_client.model.allocator import return_freed_memory
from node_client.model.batches import sample_in_batches
from node_client.model.completion import Generated, finish
from node_client.model.decoder import Decoder, can_decode, forgetting
from node_client.model.folder import load_weights, save_model
from node_client.model.halves import Remainders, can_halve, halve_weights
from node_client.model.precision import WORTH_CASTING, choose_autocast
from node_client.model.preflight import share_at_start
from node_client.model.pretrained import load_pretrained
from node_client.model.progress import Tell, keep_quiet
from node_client.model.room import Room
from node_client.model.sampling import Sampling, sample_completions
from node_client.model.scoring import Way, find_way, make_batch, score
from node_client.model.words import Words
from node_client.settings.choices import Precision
from swarm_protocol.messages import FinishReason
from swarm_protocol.prompts import SYSTEM_PROMPT


class Policy:
    """A language model that answers questions and tells how likely answers are to it."""

    def __init__(
        self, *, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, name: str
    ) -> None:
        # Evaluation mode for good: dropout would make the old and new log-probs differ by noise.
        self._model: PreTrainedModel = model.eval()  # type: ignore[no-untyped-call]
        self._words = Words(tokenizer, model)
        self.name = name
        self.device: torch.device = model.device
        self.parameters = sum(parameter.numel() for parameter in model.parameters())
        self.tokenizer_fingerprint = self._words.fingerprint
        self._compute_dtype: torch.dtype | None = None
        self._checkpointed: list[GradientCheckpointingLayer] = []
        self.room = Room("an update")
        self.sampling_room = Room("sampling")
        self._preflown = False
        self._reference: Policy | None = None
        # What the weights lack that are kept in halves; empty where all are whole.
        self.remainders: Remainders = {}

    @classmethod
    def load(
        cls,
        name_or_path: str,
        *,
        device: str = "auto",
        dtype: str = "auto",
        tell: Tell = keep_quiet,
    ) -> "Policy":
        """Load any transformers causal LM by hub name or path, or a demo base, `tiny` or `small`.

        `auto` picks the fastest device there is, and float32, because small updates vanish in
        half-precision weights. Raises ModelUnavailableError, SettingsError where the device is not
        there, and MemoryExhaustedError where the model is too large for it.
        """
        model, tokenizer = load_pretrained(name_or_path, device=device, dtype=dtype, tell=tell)
        return cls(
            model=model,
            tokenizer=tokenizer,
            name=Path(name_or_path).name if Path(name_or_path).exists() else name_or_path,
        )

    def set_precision(self, precision: Precision) -> None:
        """Compute in this precision from now on; without it, in that of the weights.

        Weights that were halved for bfloat16 are not made whole again.
        """
        if self.remainders:
            return
        self._compute_dtype = choose_autocast(
            precision, device=self.device, parameters=self.parameters
        )

    def add_adapters(self, *, rank: int, alpha: int, target_modules: Sequence[str]) -> None:
        """Train adapters (LoRA) from now on and nothing else; the first call counts.

        Raises SettingsError.
        """
        if not has_adapters(self._model):
            add_adapters(self._model, rank=rank, alpha=alpha, target_modules=target_modules)
            # Adapters are not among what the decoder knows.
            self.__dict__.pop("_can_decode", None)

    def halve_weights(self) -> None:
        """Keep weights in halves from now on if they are multiplied in bfloat16 (`model.halves`).

        The first call counts. What the model allows is found out before, in float32.
        """
        halves = self._compute_dtype == torch.bfloat16 and can_halve(self._model)
        if halves and not (self.remainders or has_adapters(self._model)):
            _ = self._way, self._can_decode
            if self.device.type == "cpu" and self.parameters >= WORTH_CASTING:
                return_freed_memory()
            self.remainders = halve_weights(self._model)

    def checkpoint_activations(self) -> None:
        """Keep no activations inside of layers for the backward pass; compute them again there."""
        modules = self._model.modules()
        self._checkpointed = [m for m in modules if isinstance(m, GradientCheckpointingLayer)]
        for layer in self._checkpointed:
            layer.gradient_checkpointing = True
            layer._gradient_checkpointing_func = partial(checkpoint, use_reentrant=False)  # type: ignore[assignment]

    def make_room(self, tokens: int, *, state_bytes: int) -> None:
        """Begin with as many of so many tokens at once as fit into memory; the first call counts.

        `state_bytes` is what the optimizer keeps of each trained parameter.
        """
        if self._preflown:
            return
        self._preflown = True
        self.room.share = share_at_start(
            self._model,
            tokens=tokens,
            state_bytes=state_bytes,
            checkpointed=bool(self._checkpointed),
            halved=self._compute_dtype is not None,
            copied=self._compute_dtype is not None and not self.remainders,
        )
        self.sampling_room.share = self.room.share

    def trainable(self) -> list[nn.Parameter]:
        """Return the parameters that an optimizer should update."""
        return [parameter for parameter in self._model.parameters() if parameter.requires_grad]

    def prompt_ids(self, question: str, *, system_prompt: str = SYSTEM_PROMPT) -> list[int]:
        """Return the tokens of a question, asked in the way that the model is used to."""
        return self._words.prompt_ids(question, system_prompt=system_prompt)

    def completion_ids(self, text: str, finish_reason: FinishReason) -> list[int] | None:
        """Return the tokens of somebody's completion, or None where they cannot be had."""
        return self._words.completion_ids(text, finish_reason)

    @torch.inference_mode()
    def generate(
        self,
        questions: Sequence[str],
        *,
        completions: int,
        max_new_tokens: int,
        temperature: float,
        top_p: float = 1.0,
        generator: torch.Generator | None = None,
        system_prompt: str = SYSTEM_PROMPT,
    ) -> list[list[Generated]]:
        """Return `completions` sampled answers to each question; temperature 0 means greedy.

        Raises MemoryExhaustedError when not even one completion fits into memory.
        """
        return sample_in_batches(
            [self.prompt_ids(text, system_prompt=system_prompt) for text in questions],
            sample=partial(self._answer, decoder=self._make_decoder()),
            sampling=Sampling(completions, max_new_tokens, temperature, top_p, generator),
            room=self.sampling_room,
            device=self.device,
        )

    def logprobs(
        self,
        prompts: Sequence[Sequence[int]],
        completions: Sequence[Sequence[int]],
        *,
        temperature: float = 1.0,
    ) -> tuple[Tensor, Tensor]:
        """Return log-probs (B, T) of the completions' tokens and a mask (B, T), 1 on tokens.

        Rows with the same prompt are computed together. Log-probs on padding are 0.
        """
        way = self._scoring_way
        batch = make_batch(
            prompts, completions, pad_id=self._words.pad_id, device=self.device, way=way
        )
        with self._autocast(), self._checkpointing():
            return score(self._model, batch, temperature=temperature, way=way), batch.mask

    @property
    def shares_prompts(self) -> bool:
        """Whether rows with the same prompt cost that prompt once in `logprobs`."""
        return self._scoring_way.shared_prompts

    def keep_reference(self) -> None:
        """Keep the model as it is now for `reference_logprobs`; the first call counts.

        With adapters it is the model without them; else a copy is kept.
        """
        if self._reference is None and not has_adapters(self._model):
            model = deepcopy(self._model).requires_grad_(False)
            self._reference = Policy(model=model, tokenizer=self._words.tokenizer, name=self.name)
            self._reference._compute_dtype = self._compute_dtype
            self._reference._way = self._way

    @torch.no_grad()
    def reference_logprobs(
        self,
        prompts: Sequence[Sequence[int]],
        completions: Sequence[Sequence[int]],
        *,
        temperature: float = 1.0,
    ) -> Tensor:
        """Return `logprobs` (B, T) of the model as `keep_reference` found it."""
        if has_adapters(self._model):
            with switched_off(self._model):
                return self.logprobs(prompts, completions, temperature=temperature)[0]
        assert self._reference is not None
        return self._reference.logprobs(prompts, completions, temperature=temperature)[0]

    def save(self, folder: Path) -> None:
        """Write model and tokenizer as a folder that `load` and transformers can read."""
        save_model(self._model, self._words, folder, remainders=self.remainders)

    def load_weights(self, folder: Path) -> None:
        """Take over the weights that `save` wrote, keeping device and optimizer references.

        Raises CheckpointError when the folder has adapters and this policy not, or the reverse.
        """
        load_weights(self._model, folder, remainders=self.remainders)

    def _answer(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, *, decoder: Decoder | None
    ) -> list[list[Generated]]:
        """Return the sampled answers to each prompt of a batch."""
        with ExitStack() as stack:
            # A decoder that copied the weights needs no other copy of them, which autocast makes.
            if decoder is None or self.remainders:
                stack.enter_context(self._autocast())
            if decoder is not None:
                stack.enter_context(forgetting(decoder))
            tokens, logprobs = sample_completions(
                self._model,
                prompts,
                sampling=sampling,
                eos_ids=torch.tensor(sorted(self._words.ends), device=self.device),
                pad_id=self._words.pad_id,
                decoder=decoder,
            )
        rows = [
            finish(row, drawn_with, words=self._words)
            for row, drawn_with in zip(tokens.tolist(), logprobs.tolist(), strict=True)
        ]
        copies = sampling.completions
        return [rows[start : start + copies] for start in range(0, len(rows), copies)]

    @cached_property
    def _way(self) -> Way:
        """How this model's log-probs are computed, found out when they are first asked for."""
        return find_way(self._model, pad_id=self._words.pad_id)

    @property
    def _scoring_way(self) -> Way:
        """The way of `logprobs`: checkpointed layers keep no keys and values to share."""
        return replace(self._way, shared_prompts=False) if self._checkpointed else self._way

    @contextmanager
    def _checkpointing(self) -> Iterator[None]:
        """Let checkpointed layers do so: they do in training mode only, which means dropout."""
        for layer in self._checkpointed:
            layer.training = True
        try:
            yield
        finally:
            for layer in self._checkpointed:
                layer.training = False

    def _make_decoder(self) -> Decoder | None:
        """Return what samples faster than the model itself, if there is such a thing for it."""
        if not self._can_decode:
            return None
        return Decoder(self._model, dtype=self._compute_dtype or self._model.dtype)

    @cached_property
    def _can_decode(self) -> bool:
        # Fresh adapters change nothing, so a trial would not find them.
        return not has_adapters(self._model) and can_decode(self._model, pad_id=self._words.pad_id)

    def _autocast(self) -> torch.autocast:
        """Multiply in the chosen precision; weights are cast once while this lasts."""
        dtype = self._compute_dtype
        return torch.autocast(self.device.type, dtype=dtype, enabled=dtype is not None)
