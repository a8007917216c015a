"""A policy generates, encodes and scores text, alone and in batches."""

from pathlib import Path

import pytest
import torch

from node_client.errors import ModelUnavailableError
from node_client.model.demo.tokenizer import build_tokenizer
from node_client.model.policy import Policy
from node_client.model.policy_tokenizer import PolicyTokenizer
from node_client.model.sampling import Sampling, sample_tokens
from tests.node_client.fakes import toy_policy

QUESTIONS = ["Calculate 3 - 1.", "Spell this word backward (example: sun -> nus): both", "?"]


@pytest.fixture(scope="module")
def policy() -> Policy:
    return toy_policy()


def test_batched_log_probs_equal_unbatched_ones(policy: Policy) -> None:
    prompts = [policy.prompt_ids(question) for question in QUESTIONS]
    completions = [[5, 6, 7, 8, 9], [10], [11, 12, 13]]
    batched, mask = policy.logprobs(prompts, completions)
    assert mask.sum(dim=1).tolist() == [5, 1, 3]
    for row, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
        alone, _ = policy.logprobs([prompt], [completion])
        assert torch.allclose(batched[row, : len(completion)], alone[0], atol=1e-4)


def test_log_probs_are_normalised_at_the_sampling_temperature(policy: Policy) -> None:
    prompt = [policy.prompt_ids("?")]
    vocabulary = [[token] for token in range(len(policy._tokenizer.tokenizer))]
    for temperature in (0.5, 1.0):
        logprobs, _ = policy.logprobs(prompt * len(vocabulary), vocabulary, temperature=temperature)
        assert logprobs.exp().sum().item() == pytest.approx(1, abs=1e-4)


def test_greedy_answers_do_not_depend_on_the_other_questions(policy: Policy) -> None:
    together = policy.generate(QUESTIONS, completions=2, max_new_tokens=6, temperature=0)
    for question, answers in zip(QUESTIONS, together, strict=True):
        (alone,) = policy.generate([question], completions=1, max_new_tokens=6, temperature=0)
        assert answers == [alone[0], alone[0]]


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_generated_tokens_have_the_log_probs_that_they_were_drawn_with(
    policy: Policy, temperature: float
) -> None:
    (answers,) = policy.generate(["?"], completions=64, max_new_tokens=8, temperature=temperature)
    logprobs, _ = policy.logprobs(
        [policy.prompt_ids("?")] * 64,
        [answer.token_ids for answer in answers],
        temperature=temperature,
    )
    for answer, expected in zip(answers, logprobs, strict=True):
        length = len(answer.token_ids)
        assert len(answer.logprobs) == length
        assert answer.logprobs == pytest.approx(expected[:length].tolist(), abs=1e-5)


def test_greedy_tokens_have_log_prob_zero(policy: Policy) -> None:
    (answers,) = policy.generate(["?"], completions=1, max_new_tokens=4, temperature=0)
    assert answers[0].logprobs == [0.0] * len(answers[0].token_ids)


def test_same_seed_gives_the_same_answers(policy: Policy) -> None:
    first, second = (
        policy.generate(
            QUESTIONS,
            completions=3,
            max_new_tokens=5,
            temperature=1,
            generator=torch.Generator().manual_seed(1),
        )
        for _ in range(2)
    )
    assert first == second


def test_no_questions_give_no_answers(policy: Policy) -> None:
    assert policy.generate([], completions=2, max_new_tokens=4, temperature=0) == []


def test_stopped_completion_is_encoded_with_its_end_token(policy: Policy) -> None:
    ids = policy.completion_ids("<answer>4</answer>", "stop")
    truncated = policy.completion_ids("<answer>4</answer>", "length")
    assert ids is not None
    assert ids[:-1] == truncated
    assert ids[-1] not in ids[:-1]


def test_generated_completion_is_encoded_to_the_generated_tokens(policy: Policy) -> None:
    answers = policy.generate(["?"], completions=2000, max_new_tokens=1, temperature=1)[0]
    readable = [answer for answer in answers if "\ufffd" not in answer.text]
    stopped = [answer for answer in readable if answer.finish_reason == "stop"]
    assert len(readable) > len(stopped) > 0
    for answer in [*stopped, *(answer for answer in readable if answer.text)]:
        assert policy.completion_ids(answer.text, answer.finish_reason) == answer.token_ids


@pytest.mark.parametrize("text", ["", " 7 x 6 ", "<answer>42</answer>", "4<eos>", "e\u0301 数 🙂"])
def test_text_is_encoded_as_in_transformers(policy: Policy, text: str) -> None:
    wrapper, tokenizer = policy._tokenizer, policy._tokenizer.tokenizer
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert wrapper.encode(text) == ids
    assert wrapper.decode(ids) == tokenizer.decode(ids, skip_special_tokens=True)


def test_tokenizer_that_differs_from_its_backend_is_called_itself(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = build_tokenizer()
    plain = tokenizer.decode
    monkeypatch.setattr(tokenizer, "decode", lambda ids, **how: str(plain(ids, **how)).upper())
    wrapper = PolicyTokenizer(tokenizer, policy._model)
    assert wrapper.decode(wrapper.encode("abc")) == "ABC"


@pytest.mark.parametrize("text", ["<eos>", "4<pad>", "e\u0301"])
def test_text_that_the_tokenizer_cannot_represent_is_refused(policy: Policy, text: str) -> None:
    assert policy.completion_ids(text, "stop") is None


def test_empty_truncated_completion_is_refused(policy: Policy) -> None:
    assert policy.completion_ids("", "length") is None


def test_saved_policy_can_be_loaded_by_path(policy: Policy, tmp_path: Path) -> None:
    policy.save(tmp_path / "mine")
    loaded = Policy.load(str(tmp_path / "mine"), device="cpu")
    assert loaded.name == "mine"
    assert loaded.parameters == policy.parameters
    assert loaded.tokenizer_fingerprint == policy.tokenizer_fingerprint
    greedy = {"completions": 1, "max_new_tokens": 4, "temperature": 0.0}
    assert loaded.generate(["?"], **greedy) == policy.generate(["?"], **greedy)  # type: ignore[arg-type]


def test_folder_without_a_model_is_explained(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelUnavailableError, match="cannot be used"):
        Policy.load(str(tmp_path))


def test_nucleus_sampling_draws_only_the_likeliest_tokens() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log().repeat(500, 1)
    generator = torch.Generator().manual_seed(0)
    sampling = Sampling(1, 1, temperature=1, top_p=0.7, generator=generator)
    tokens, logprobs = sample_tokens(logits, sampling=sampling)
    assert set(tokens.tolist()) == {0, 1}
    # Within the nucleus, the two tokens share all the probability.
    expected = torch.tensor([0.5 / 0.8, 0.3 / 0.8]).log()[tokens]
    assert torch.allclose(logprobs, expected)
