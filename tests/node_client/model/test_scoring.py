"""Log-probs with shared prompts equal plain ones, or the model is run without sharing."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    GPT2Config,
    GPTNeoXConfig,
    LlamaConfig,
    Mamba2Config,
    MistralConfig,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen3Config,
)

from node_client.model import scoring
from node_client.model.scoring import (
    PLAIN,
    ScoringMode,
    find_scoring_mode,
    make_scoring_batch,
    score,
)
from tests.node_client.fakes import toy_policy
from tests.node_client.model.shapes import SHAPE

BEST = ScoringMode(shared_prompts=True, separate_head=True)
CAPPED = ScoringMode(shared_prompts=True, separate_head=False)
ARCHITECTURES: dict[str, tuple[Callable[[], PreTrainedConfig], ScoringMode]] = {
    "qwen2": (lambda: Qwen2Config(**SHAPE), BEST),
    "qwen3": (lambda: Qwen3Config(**SHAPE), BEST),
    "llama": (lambda: LlamaConfig(**SHAPE), BEST),
    "mistral with a short sliding window": (
        lambda: MistralConfig(**SHAPE, sliding_window=4),
        BEST,
    ),
    "gemma2 with capped logits": (
        lambda: Gemma2Config(**SHAPE, sliding_window=4, final_logit_softcapping=0.1),
        CAPPED,
    ),
    "gemma3 with a sliding window": (
        lambda: Gemma3TextConfig(**SHAPE, sliding_window=4),
        BEST,
    ),
    "gpt2": (lambda: GPT2Config(vocab_size=40, n_embd=32, n_layer=2, n_head=4), BEST),
    "gpt-neox": (lambda: GPTNeoXConfig(**SHAPE), BEST),
    "mamba2, which has no keys and values": (
        lambda: Mamba2Config(
            vocab_size=40,
            hidden_size=32,
            num_hidden_layers=2,
            num_heads=8,
            head_dim=8,
            expand=2,
            n_groups=1,
            state_size=16,
            chunk_size=8,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
        ),
        ScoringMode(shared_prompts=False, separate_head=True),
    ),
}
PROMPTS = [[3, 4, 5, 6, 7, 8, 9], [10, 11], [3, 4, 5, 6, 7, 8, 9], [10, 11], [12, 13, 14]]
COMPLETIONS = [[15, 16, 17, 18, 2], [19], [20, 21], [22, 23, 24, 2], [25, 26, 27]]


def build(architecture: str) -> PreTrainedModel:
    """Return a model with random weights that are large enough for differences to show."""
    config, _ = ARCHITECTURES[architecture]
    torch.manual_seed(0)
    model: PreTrainedModel = AutoModelForCausalLM.from_config(config()).eval()  # type: ignore[no-untyped-call]
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(5)
    return model


def run(model: PreTrainedModel, mode: ScoringMode) -> tuple[Tensor, list[Tensor]]:
    """Return log-probs, and the gradients of a sum of them with unequal weights."""
    batch = make_scoring_batch(PROMPTS, COMPLETIONS, pad_id=0, device=model.device, mode=mode)
    logprobs = score(model, batch, temperature=0.7, mode=mode)
    model.zero_grad()
    (logprobs * torch.arange(1, logprobs.numel() + 1).view_as(logprobs)).sum().backward()  # type: ignore[no-untyped-call]
    return logprobs.detach(), [
        torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.clone()
        for parameter in model.parameters()
    ]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_chosen_mode_gives_plain_log_probs_and_gradients(architecture: str) -> None:
    model = build(architecture)
    mode = find_scoring_mode(model, pad_id=0)
    assert mode == ARCHITECTURES[architecture][1]
    logprobs, gradients = run(model, mode)
    plain_logprobs, plain_gradients = run(model, PLAIN)
    assert torch.allclose(logprobs, plain_logprobs, atol=1e-4)
    scale = max(gradient.abs().max().item() for gradient in plain_gradients)
    for gradient, plain in zip(gradients, plain_gradients, strict=True):
        assert torch.allclose(gradient / scale, plain / scale, atol=1e-4)


def test_large_vocabularies_are_scored_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("qwen2")
    whole, gradients = run(model, BEST)
    monkeypatch.setattr(scoring, "LOGITS_AT_ONCE", 2 * 40)
    portioned, portioned_gradients = run(model, BEST)
    assert torch.allclose(whole, portioned, atol=1e-5)
    for gradient, other in zip(gradients, portioned_gradients, strict=True):
        assert torch.allclose(gradient, other, rtol=1e-4, atol=1e-3)


def test_completions_of_one_token_are_scored_without_a_second_run() -> None:
    model = build("qwen2")
    shared, plain = (
        score(
            model,
            make_scoring_batch(PROMPTS, [[5]] * 5, pad_id=0, device=model.device, mode=mode),
            temperature=1.0,
            mode=mode,
        )
        for mode in (BEST, PLAIN)
    )
    assert torch.allclose(shared, plain, atol=1e-4)


def test_equal_prompts_are_run_once() -> None:
    batch = make_scoring_batch(
        PROMPTS, COMPLETIONS, pad_id=0, device=torch.device("cpu"), mode=BEST
    )
    assert batch.prompts.shape == (3, 7)
    assert batch.owners.tolist() == [0, 1, 0, 1, 2]


def test_checkpointed_layers_give_the_same_log_probs_and_gradients() -> None:
    found = []
    for checkpointed in (False, True):
        policy = toy_policy()
        if checkpointed:
            policy.checkpoint_activations()
        logprobs, _ = policy.logprobs(PROMPTS, COMPLETIONS)
        logprobs.sum().backward()  # type: ignore[no-untyped-call]
        gradients = [parameter.grad for parameter in policy.trainable()]
        found.append([logprobs.detach(), *(grad for grad in gradients if grad is not None)])
        assert policy.shares_prompts is not checkpointed
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=1e-4)


def test_checkpointed_layers_do_not_change_sampling() -> None:
    plain, checkpointed = toy_policy(), toy_policy()
    checkpointed.checkpoint_activations()
    greedy = {"completions": 1, "max_new_tokens": 4, "temperature": 0.0}
    assert checkpointed.generate(["?"], **greedy) == plain.generate(["?"], **greedy)  # type: ignore[arg-type]
