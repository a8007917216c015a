"""A policy: one causal language model with its tokenizer, on one device."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.modeling_layers import GradientCheckpointingLayer

from node_client.model.adapters import adapters_disabled, add_adapters, has_adapters
from node_client.model.decoder import Decoder, can_decode
from node_client.model.devices import MIN_CAST_PARAMETERS, choose_autocast, linear_weights_as
from node_client.model.halves import Remainders, can_halve, halve_weights
from node_client.model.loading.pretrained import load_pretrained, load_weights, save_model
from node_client.model.loading.progress import OnProgress, ignore_progress
from node_client.model.memory.budget import MemoryBudget
from node_client.model.memory.estimates import initial_share
from node_client.model.memory.limits import return_freed_memory
from node_client.model.padding import Rows
from node_client.model.policy_tokenizer import PolicyTokenizer
from node_client.model.sampling import (
    Generated,
    Sampling,
    check_cache,
    sample_completions,
    sample_in_batches,
)
from node_client.model.scoring import ScoringMode, find_scoring_mode, make_scoring_batch, score
from node_client.settings.choices import Precision
from swarm_protocol.messages import FinishReason
from swarm_protocol.prompts import SYSTEM_PROMPT


class Policy:
    """A language model that answers questions and returns the log-probs of answers."""

    def __init__(
        self, *, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, name: str
    ) -> None:
        # Always in evaluation mode: with dropout the old and new log-probs would differ by noise.
        self._model: PreTrainedModel = model.eval()  # type: ignore[no-untyped-call]
        self._tokenizer = PolicyTokenizer(tokenizer, model)
        self.name = name
        self.device: torch.device = model.device
        self.parameters = sum(parameter.numel() for parameter in model.parameters())
        self.tokenizer_fingerprint = self._tokenizer.fingerprint
        self._compute_dtype: torch.dtype | None = None
        self._checkpointed: list[GradientCheckpointingLayer] = []
        self.update_budget = MemoryBudget("an update")
        self.sampling_budget = MemoryBudget("sampling")
        self._has_estimate = False
        self._reference: Policy | None = None
        # Of weights that are stored in halves; empty if all are float32.
        self.remainders: Remainders = {}

    @classmethod
    def load(
        cls, name_or_path: str, *, device: str = "auto", on_progress: OnProgress = ignore_progress
    ) -> "Policy":
        """Load a model as `load_pretrained` does; raises the same errors.

        ModelUnavailableError is also raised if completions cannot be sampled from the model.
        """
        model, tokenizer = load_pretrained(name_or_path, device=device, on_progress=on_progress)
        check_cache(model, name=name_or_path)
        return cls(
            model=model,
            tokenizer=tokenizer,
            name=Path(name_or_path).name if Path(name_or_path).exists() else name_or_path,
        )

    def set_precision(self, precision: Precision) -> None:
        """Compute in `precision` from now on; before the first call, the weights' own type is used.

        Does nothing after `halve_weights` has split the weights, because split weights need
        bfloat16.
        """
        if self.remainders:
            return
        self._compute_dtype = choose_autocast(
            precision, device=self.device, parameters=self.parameters
        )

    def add_adapters(self, *, rank: int, alpha: int, target_modules: Sequence[str]) -> None:
        """Train only adapters (LoRA) from now on. Does nothing if the model already has adapters.

        `target_modules` names the layers to adapt; if empty, all linear layers except the output
        layer. Raises SettingsError if peft is not installed, or if the model has none of the named
        layers.
        """
        if not has_adapters(self._model):
            add_adapters(self._model, rank=rank, alpha=alpha, target_modules=target_modules)
            # The decoder does not support adapters.
            self.__dict__.pop("_can_decode", None)

    def halve_weights(self) -> None:
        """Split weights into two halves of 16 bits (`model.halves`) if the policy uses bfloat16.

        Does nothing if this was done before, if the model has adapters, or if its embedding is not
        a plain `nn.Embedding`. Before the split, this method runs the trials that determine which
        ways of scoring and sampling the model supports, because they need float32 weights.
        """
        halves = self._compute_dtype == torch.bfloat16 and can_halve(self._model)
        if halves and not (self.remainders or has_adapters(self._model)):
            _ = self._scoring_mode, self._can_decode
            if self.device.type == "cpu" and self.parameters >= MIN_CAST_PARAMETERS:
                return_freed_memory()
            self.remainders = halve_weights(self._model)

    def checkpoint_activations(self) -> None:
        """Keep no activations inside layers; the backward pass computes them again."""
        modules = self._model.modules()
        self._checkpointed = [m for m in modules if isinstance(m, GradientCheckpointingLayer)]
        for layer in self._checkpointed:
            layer.gradient_checkpointing = True
            layer._gradient_checkpointing_func = partial(checkpoint, use_reentrant=False)  # type: ignore[assignment]

    def estimate_budgets(self, tokens: int, *, state_bytes: int) -> None:
        """Set the memory budgets of updates and sampling by an estimate; later calls do nothing.

        `tokens` is the desired number of tokens per forward pass of an update, `state_bytes` the
        size of the optimizer's state for each trained parameter.
        """
        if self._has_estimate:
            return
        self._has_estimate = True
        self.update_budget.share = initial_share(
            self._model,
            tokens=tokens,
            state_bytes=state_bytes,
            checkpointed=bool(self._checkpointed),
            half_precision=self._compute_dtype is not None,
            copied=self._compute_dtype is not None and not self.remainders,
        )
        self.sampling_budget.share = self.update_budget.share

    def trainable(self) -> list[nn.Parameter]:
        """Return the parameters that an optimizer should update."""
        return [parameter for parameter in self._model.parameters() if parameter.requires_grad]

    def prompt_ids(self, question: str, *, system_prompt: str = SYSTEM_PROMPT) -> list[int]:
        """Return the tokens of a question as a prompt in the model's own format."""
        return self._tokenizer.prompt_ids(question, system_prompt=system_prompt)

    def completion_ids(self, text: str, finish_reason: FinishReason) -> list[int] | None:
        """Return the tokens of `text`, a completion of any node, with EOS if it ended with `stop`.

        Returns None if this policy's tokenizer cannot represent the text or reads special tokens
        in it, or if there are no tokens.
        """
        return self._tokenizer.completion_ids(text, finish_reason)

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
        make_decoder = None
        if self._can_decode:
            dtype = self._compute_dtype or self._model.dtype
            # Made with the first batch: if its copy of weights does not fit, the budget reports it.
            make_decoder = cache(partial(Decoder, self._model, dtype=dtype))
        return sample_in_batches(
            [self.prompt_ids(text, system_prompt=system_prompt) for text in questions],
            sample=partial(self._answer, make_decoder=make_decoder),
            sampling=Sampling(completions, max_new_tokens, temperature, top_p, generator),
            budget=self.sampling_budget,
            device=self.device,
        )

    def logprobs(
        self, prompts: Rows, completions: Rows, *, temperature: float = 1.0
    ) -> tuple[Tensor, Tensor]:
        """Return log-probs (B, T) of the completions' tokens and a mask (B, T), 1 on tokens.

        If `shares_prompts` is true, a prompt that several rows share runs only once. Log-probs on
        padding are 0.
        """
        mode = self._logprobs_mode
        batch = make_scoring_batch(
            prompts, completions, pad_id=self._tokenizer.pad_id, device=self.device, mode=mode
        )
        with self._autocast(), self._checkpointing():
            return score(self._model, batch, temperature=temperature, mode=mode), batch.mask

    @property
    def shares_prompts(self) -> bool:
        """Whether `logprobs` runs a prompt once for all rows that share it."""
        return self._logprobs_mode.shared_prompts

    def keep_reference(self) -> None:
        """Keep the present model for `reference_logprobs`; later calls do nothing.

        The reference is a copy; for a model with adapters, it is the model without adapters.
        """
        if self._reference is None and not has_adapters(self._model):
            model = deepcopy(self._model).requires_grad_(False)
            self._reference = Policy(
                model=model, tokenizer=self._tokenizer.tokenizer, name=self.name
            )
            self._reference._compute_dtype = self._compute_dtype
            self._reference._scoring_mode = self._scoring_mode

    @torch.no_grad()
    def reference_logprobs(
        self, prompts: Rows, completions: Rows, *, temperature: float = 1.0
    ) -> Tensor:
        """Return log-probs (B, T) as `logprobs` does, of the model that `keep_reference` kept."""
        if has_adapters(self._model):
            with adapters_disabled(self._model):
                return self.logprobs(prompts, completions, temperature=temperature)[0]
        assert self._reference is not None
        return self._reference.logprobs(prompts, completions, temperature=temperature)[0]

    def save(self, folder: Path) -> None:
        """Write model and tokenizer as a folder that `load` and transformers can read.

        A model with adapters is written as its adapters only.
        """
        save_model(self._model, self._tokenizer.tokenizer, folder, remainders=self.remainders)

    def load_weights(self, folder: Path) -> None:
        """Load the weights that `save` wrote, keeping the parameter objects and their device.

        Raises CheckpointError if only the folder or only this policy has adapters, or if both have
        adapters of different shapes or layers.
        """
        load_weights(self._model, folder, remainders=self.remainders)

    def _answer(
        self, prompts: Rows, sampling: Sampling, *, make_decoder: Callable[[], Decoder] | None
    ) -> list[list[Generated]]:
        """Return the sampled answers to each prompt of a batch."""
        decoder = make_decoder() if make_decoder else None
        with ExitStack() as stack:
            # A decoder with a copy of the weights does not need the casts that autocast makes.
            if decoder is None or self.remainders:
                stack.enter_context(self._autocast())
            if decoder is None and self._compute_dtype is not None:
                stack.enter_context(linear_weights_as(self._compute_dtype, self._model))
            if decoder is not None:
                stack.callback(decoder.free_cache)  # also if memory runs out
            tokens, logprobs = sample_completions(
                self._model,
                prompts,
                sampling=sampling,
                eos_ids=torch.tensor(sorted(self._tokenizer.ends), device=self.device),
                pad_id=self._tokenizer.pad_id,
                decoder=decoder,
            )
        rows = [
            self._finish(row, drawn_with)
            for row, drawn_with in zip(tokens.tolist(), logprobs.tolist(), strict=True)
        ]
        copies = sampling.completions
        return [rows[start : start + copies] for start in range(0, len(rows), copies)]

    def _finish(self, row: list[int], logprobs: list[float]) -> Generated:
        """Cut a sampled row after its first EOS and decode it."""
        ends = self._tokenizer.ends
        end = next((place for place, token in enumerate(row) if token in ends), None)
        if end is None:
            return Generated(self._tokenizer.decode(row), "length", row, logprobs)
        text = self._tokenizer.decode(row[:end])
        return Generated(text, "stop", row[: end + 1], logprobs[: end + 1])

    @cached_property
    def _scoring_mode(self) -> ScoringMode:
        """How this model's log-probs are computed; a trial at the first use decides."""
        return find_scoring_mode(self._model, pad_id=self._tokenizer.pad_id)

    @property
    def _logprobs_mode(self) -> ScoringMode:
        """The mode of `logprobs`, which shares no prompts if activations are checkpointed.

        Checkpointed layers do not keep the keys and values that sharing needs.
        """
        return (
            replace(self._scoring_mode, shared_prompts=False)
            if self._checkpointed
            else self._scoring_mode
        )

    @contextmanager
    def _checkpointing(self) -> Iterator[None]:
        """Put the checkpointed layers into training mode while the block runs.

        Layers recompute activations only in training mode. After the block they are in evaluation
        mode.
        """
        for layer in self._checkpointed:
            layer.training = True
        try:
            yield
        finally:
            for layer in self._checkpointed:
                layer.training = False

    @cached_property
    def _can_decode(self) -> bool:
        """Whether a decoder, which is faster than the model itself, supports the model."""
        # New adapters do not change the output, so a trial would not notice them.
        return not has_adapters(self._model) and can_decode(
            self._model, pad_id=self._tokenizer.pad_id
        )

    def _autocast(self) -> torch.autocast:
        """Return a context in which matrix products are computed in `_compute_dtype`.

        The context does nothing if `_compute_dtype` is None. Outside of inference mode, each
        trained weight is cast only once in it.
        """
        dtype = self._compute_dtype
        return torch.autocast(self.device.type, dtype=dtype, enabled=dtype is not None)
