"""Sampling in batches that shrink when memory runs out, and from models with recurrent layers."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from node_client.errors import MemoryExhaustedError, ModelUnavailableError
from node_client.model.demo.tokenizer import build_tokenizer
from node_client.model.policy import Policy
from node_client.model.sampling import Sampling, sample_completions
from tests.node_client.fakes import toy_policy
from tests.node_client.model.shapes import SHAPE

FULL = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes.")
QUESTIONS = [f"{n} + {n}?" for n in range(8)]
COPIES = 4


class Cramped:
    """Samples if there are few enough rows, and records how many were tried."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, rows: int) -> None:
        self.rows = rows
        self.tried: list[int] = []
        monkeypatch.setattr("node_client.model.policy.sample_completions", self.sample)

    def sample(self, model: Any, prompts: Any, *, sampling: Sampling, **options: Any) -> Any:
        self.tried.append(len(prompts) * sampling.completions)
        if self.tried[-1] > self.rows:
            raise FULL
        return sample_completions(model, prompts, sampling=sampling, **options)


def answers_of(policy: Any) -> list[list[str]]:
    given = policy.generate(QUESTIONS, completions=COPIES, max_new_tokens=4, temperature=0)
    return [[one.text for one in row] for row in given]


@pytest.mark.slow
@pytest.mark.parametrize("rows", [12, 3, 1])
def test_answers_are_the_same_in_smaller_batches(
    monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    expected = answers_of(toy_policy())
    cramped = Cramped(monkeypatch, rows=rows)
    assert answers_of(toy_policy()) == expected
    assert min(cramped.tried) <= rows


def test_first_failure_halves_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    cramped = Cramped(monkeypatch, rows=16)
    answers_of(toy_policy())
    assert cramped.tried[:2] == [32, 16]


@pytest.mark.slow
def test_next_batch_starts_with_the_size_that_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, cramped = toy_policy(), Cramped(monkeypatch, rows=3)
    answers_of(policy)
    cramped.tried.clear()
    answers_of(policy)
    assert max(cramped.tried) <= 3


@pytest.mark.slow
def test_smaller_sampling_batches_do_not_affect_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, _ = toy_policy(), Cramped(monkeypatch, rows=3)
    answers_of(policy)
    assert policy.sampling_budget.share < policy.update_budget.share == 1


@pytest.mark.slow
def test_sampling_that_never_fits_ends_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    Cramped(monkeypatch, rows=0)
    with pytest.raises(MemoryExhaustedError, match="in sampling") as caught:
        answers_of(toy_policy())
    for setting in ("max_completion_length", "num_generations", "lora_r", "smaller model"):
        assert setting in caught.value.fix
    assert "micro_batch_tokens" not in caught.value.fix


def test_single_completion_is_tried_however_small_the_estimate_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy, cramped = toy_policy(), Cramped(monkeypatch, rows=1)
    policy.sampling_budget.share = 2**-14
    assert len(answers_of(policy)) == len(QUESTIONS)
    assert cramped.tried[:2] == [COPIES, 1]


def test_copy_of_the_weights_that_does_not_fit_ends_with_advice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy = toy_policy()
    assert policy._can_decode

    def fail(*_: Any, **__: Any) -> Any:
        raise FULL

    monkeypatch.setattr("node_client.model.policy.Decoder", fail)
    with pytest.raises(MemoryExhaustedError, match="in sampling"):
        answers_of(policy)


def test_other_errors_are_not_treated_as_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr("node_client.model.policy.sample_completions", fail)
    with pytest.raises(RuntimeError, match="shapes do not match"):
        answers_of(toy_policy())


TOKENIZER = build_tokenizer()
SIZES = {**SHAPE, "vocab_size": len(TOKENIZER), "num_hidden_layers": 4}
LINEAR: dict[str, Any] = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "layer_types": ["linear_attention", "full_attention"] * 2,
}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
HYBRIDS: dict[str, dict[str, Any]] = {
    "qwen3_5_text": LINEAR,
    "qwen3_next": {**LINEAR, **EXPERTS},
    "lfm2": {"layer_types": ["conv", "full_attention"] * 2},
    # Each of its layers has both attention and a state space.
    "falcon_h1": {
        "mamba_d_ssm": 32,
        "mamba_n_heads": 4,
        "mamba_d_head": 8,
        "mamba_d_state": 8,
        "mamba_n_groups": 1,
    },
}


def build_policy(kind: str, **sizes: Any) -> Policy:
    """Return a policy with random weights that are large enough for differences to show."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, **{**SIZES, **sizes})
    model = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(4)
    return Policy(model=model, tokenizer=TOKENIZER, name=kind)


@pytest.mark.parametrize("kind", HYBRIDS)
def test_model_with_recurrent_layers_draws_tokens_with_the_log_probs_of_single_rows(
    kind: str,
) -> None:
    policy = build_policy(kind, **HYBRIDS[kind])
    questions = ["1 + 1 =", "Calculate 3 - 1 and then add 5.", "?"]
    answers = policy.generate(
        questions,
        completions=12,
        max_new_tokens=24,
        temperature=1.0,
        generator=torch.Generator().manual_seed(0),
    )
    assert any(answer.finish_reason == "stop" for row in answers for answer in row)
    for question, row in zip(questions, answers, strict=True):
        for answer in row:
            expected, _ = policy.logprobs([policy.prompt_ids(question)], [answer.token_ids])
            assert answer.logprobs == pytest.approx(expected[0].tolist(), abs=1e-4)


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("mamba2", {"num_heads": 4, "head_dim": 16, "n_groups": 1}),
        ("recurrent_gemma", {"lru_width": 32}),
    ],
)
def test_model_without_a_usable_cache_is_refused_at_loading(
    tmp_path: Path, kind: str, sizes: dict[str, Any]
) -> None:
    build_policy(kind, **sizes).save(tmp_path)
    with pytest.raises(ModelUnavailableError, match=f"it is a {kind}"):
        Policy.load(str(tmp_path), device="cpu")
