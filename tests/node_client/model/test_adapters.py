"""Adapters are trained, saved, loaded, disabled and merged; the model's weights do not change."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM

from node_client.errors import CheckpointError, ModelUnavailableError, SettingsError
from node_client.learning.optimizer import begin_training
from node_client.learning.timing import StepTimer
from node_client.learning.update.updater import Updater
from node_client.model.loading.pretrained import merge_adapters
from node_client.model.policy import Policy
from node_client.settings.train_config import TrainConfig
from tests.node_client.fakes import toy_policy
from tests.node_client.full_disk import limit_file_size
from tests.node_client.learning.teamwork import UPDATES

# Importing peft takes seconds.
pytestmark = pytest.mark.slow

CONFIG = TrainConfig(learning_rate=1e-2, lora_r=4)
PROMPT, COMPLETION = [[3, 4, 5]], [[6, 7, 1]]


def adapted(*, seed: int = 0, config: TrainConfig = CONFIG) -> Policy:
    policy = toy_policy(seed=seed)
    begin_training(policy, config)
    return policy


def trained(policy: Policy) -> Policy:
    """Train the policy's adapters for one optimizer step."""
    updater = Updater(policy, CONFIG)
    updater.update(UPDATES[0].groups, timer=StepTimer(lambda: 0.0))
    return policy


def logprobs(policy: Policy) -> torch.Tensor:
    return policy.logprobs(PROMPT, COMPLETION)[0].detach()


def test_new_adapters_do_not_change_the_output() -> None:
    assert torch.equal(logprobs(adapted()), logprobs(toy_policy()))


def test_adapters_are_initialised_the_same_in_every_run() -> None:
    pairs = zip(adapted().trainable(), adapted().trainable(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


def test_only_adapters_are_trained() -> None:
    policy = adapted()
    count = sum(parameter.numel() for parameter in policy.trainable())
    assert 0 < count < policy.parameters / 2
    assert not torch.allclose(logprobs(trained(policy)), logprobs(toy_policy()))


def test_reference_is_the_model_without_adapters() -> None:
    policy = adapted()
    policy.keep_reference()
    reference = trained(policy).reference_logprobs(PROMPT, COMPLETION)
    assert torch.allclose(reference, logprobs(toy_policy()))
    assert not torch.allclose(reference, logprobs(policy))


def test_policy_with_adapters_generates_its_likeliest_tokens() -> None:
    policy = trained(adapted())
    [[answer]] = policy.generate(["1 + 1"], completions=1, max_new_tokens=6, temperature=0.0)
    ids = policy.prompt_ids("1 + 1")
    for place, token in enumerate(answer.token_ids):
        own, _ = policy.logprobs([ids], [answer.token_ids])
        rivals = [[*answer.token_ids[:place], other] for other in range(3, 40)]
        others, _ = policy.logprobs([ids] * len(rivals), rivals)
        assert own[0, place] >= others[:, place].max() - 1e-5, token


def test_saved_adapters_can_be_loaded(tmp_path: Path) -> None:
    policy = trained(adapted())
    policy.save(tmp_path)
    again = adapted()
    again.load_weights(tmp_path)
    assert torch.equal(logprobs(again), logprobs(policy))


def test_adapters_cannot_be_loaded_into_a_run_that_trains_all_weights(tmp_path: Path) -> None:
    adapted().save(tmp_path)
    with pytest.raises(CheckpointError, match="trained with adapters"):
        toy_policy().load_weights(tmp_path)


def test_all_weights_cannot_be_loaded_into_a_run_that_trains_adapters(tmp_path: Path) -> None:
    toy_policy().save(tmp_path)
    with pytest.raises(CheckpointError, match="trained with all weights"):
        adapted().load_weights(tmp_path)


def test_adapters_of_another_rank_are_refused(tmp_path: Path) -> None:
    adapted().save(tmp_path)
    other = adapted(config=TrainConfig(lora_r=2))
    with pytest.raises(CheckpointError, match="of another shape"):
        other.load_weights(tmp_path)


def test_target_layers_that_the_model_lacks_are_refused() -> None:
    with pytest.raises(SettingsError, match="do not fit"):
        adapted(config=TrainConfig(lora_r=4, lora_target_modules=("no_such_layer",)))


def test_merged_adapters_are_an_ordinary_model(tmp_path: Path) -> None:
    toy_policy().save(tmp_path / "base")
    policy = Policy.load(str(tmp_path / "base"), device="cpu")
    begin_training(policy, CONFIG)
    trained(policy).save(tmp_path / "adapters")
    merge_adapters(tmp_path / "adapters", tmp_path / "merged")
    merged = Policy.load(str(tmp_path / "merged"), device="cpu")
    assert not hasattr(AutoModelForCausalLM.from_pretrained(tmp_path / "merged"), "peft_config")
    assert torch.allclose(logprobs(merged), logprobs(policy), atol=1e-5)


def test_full_disk_during_a_merge_raises_os_error(tmp_path: Path) -> None:
    toy_policy().save(tmp_path / "base")
    policy = Policy.load(str(tmp_path / "base"), device="cpu")
    begin_training(policy, CONFIG)
    policy.save(tmp_path / "adapters")
    with limit_file_size(2000), pytest.raises(OSError, match="File too large"):
        merge_adapters(tmp_path / "adapters", tmp_path / "merged")


def test_folder_with_adapters_can_be_loaded_as_a_model(tmp_path: Path) -> None:
    toy_policy().save(tmp_path / "base")
    policy = Policy.load(str(tmp_path / "base"), device="cpu")
    begin_training(policy, CONFIG)
    trained(policy).save(tmp_path / "adapters")
    loaded = Policy.load(str(tmp_path / "adapters"), device="cpu")
    assert torch.allclose(logprobs(loaded), logprobs(policy), atol=1e-5)
    assert loaded.parameters == toy_policy().parameters
    assert begin_training(loaded, TrainConfig()).param_groups[0]["params"]


def name_no_base(folder: Path) -> None:
    (folder / "adapter_config.json").write_text("{}")


def write_a_list(folder: Path) -> None:
    (folder / "adapter_config.json").write_text("[]")


def lose_the_kind(folder: Path) -> None:
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "tiny"}')


def lose_weights(folder: Path) -> None:
    (folder / "adapter_model.safetensors").unlink()


def damage_weights(folder: Path) -> None:
    (folder / "adapter_model.safetensors").write_bytes(b"xxx")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (name_no_base, "adapter_config.json cannot be read or names no base model"),
        (write_a_list, "adapter_config.json cannot be read or names no base model"),
        (lose_the_kind, "could not be loaded: 'peft_type'"),
        (lose_weights, "its adapters have no weights"),
        (damage_weights, "could not be loaded: .*header"),
    ],
)
def test_damaged_folder_with_adapters_is_reported_with_the_reason(
    tmp_path: Path, spoil: Callable[[Path], None], message: str
) -> None:
    policy = Policy.load("tiny", device="cpu")
    begin_training(policy, CONFIG)
    policy.save(tmp_path)
    spoil(tmp_path)
    with pytest.raises(ModelUnavailableError, match=f"The model {tmp_path} .*{message}"):
        Policy.load(str(tmp_path), device="cpu")


def test_adapters_trained_on_adapters_can_be_loaded_as_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy_policy().save(tmp_path / "base")
    monkeypatch.chdir(tmp_path)
    for base, folder in (("base", "first"), ("first", "second")):
        policy = Policy.load(base, device="cpu")
        begin_training(policy, CONFIG)
        trained(policy).save(tmp_path / folder)
    monkeypatch.chdir("/")
    loaded = Policy.load(str(tmp_path / "second"), device="cpu")
    assert torch.allclose(logprobs(loaded), logprobs(policy), atol=1e-5)


def test_adapters_of_fewer_layers_are_refused(tmp_path: Path) -> None:
    adapted(config=TrainConfig(lora_r=4, lora_target_modules=("q_proj",))).save(tmp_path)
    with pytest.raises(CheckpointError, match="in other places"):
        adapted().load_weights(tmp_path)


@pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings")
def test_policy_with_adapted_embeddings_samples_without_the_decoder() -> None:
    policy = adapted(config=TrainConfig(lora_r=4, lora_target_modules=("embed_tokens",)))
    assert not policy._can_decode


class WeightCasts(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the casts of a policy's own weights."""

    def __init__(self, policy: Policy) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0
        self._weights = {weight.data_ptr() for weight in policy.trainable()}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        # Inference mode passes the first of these operations on, other modes the second.
        if func.overloadpacket in (torch.ops.aten.to, torch.ops.aten._to_copy):
            self.count += args[0].data_ptr() in self._weights
        return func(*args, **(kwargs or {}))


def test_weights_are_cast_once_and_not_for_each_sampled_token() -> None:
    policy = adapted()
    policy.set_precision("bf16")
    counts = []
    for tokens in (2, 8):
        generator = torch.Generator().manual_seed(0)
        with WeightCasts(policy) as casts:
            [[answer]] = policy.generate(
                ["2"], completions=1, max_new_tokens=tokens, temperature=1.0, generator=generator
            )
        assert len(answer.token_ids) == tokens
        counts.append(casts.count)
    assert counts[0] == counts[1] > 0


def test_weights_are_unchanged_after_sampling() -> None:
    policy = adapted()
    policy.set_precision("bf16")
    before = policy.trainable()
    policy.generate(["2"], completions=1, max_new_tokens=2, temperature=1.0)
    assert all(one is other for one, other in zip(policy.trainable(), before, strict=True))
