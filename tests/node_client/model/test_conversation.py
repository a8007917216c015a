from collections.abc import Callable
from typing import Any

import pytest
import torch
from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from node_client.model.conversation import ChatSettings, Conversation
from node_client.model.demo.make_model import build_model
from node_client.model.demo.tokenizer import build_tokenizer
from tests.node_client.fakes import TOY

ROLES = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"


class RecordingModel:
    """A model that records each prompt, and generates `ok`."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, most: int) -> None:
        self.prompts: list[str] = []
        self.sampling: dict[str, Any] = {}
        self.interrupt = False
        self.device = torch.device("cpu")
        self.config = type("Config", (), {"max_position_embeddings": most})
        self._tokenizer = tokenizer

    def eval(self) -> "RecordingModel":
        return self

    def generate(self, ids: torch.Tensor, *, streamer: Any, **sampling: Any) -> None:
        self.prompts.append(str(self._tokenizer.decode(ids[0])))
        self.sampling = sampling
        streamer.put(ids)
        streamer.put(torch.tensor(self._tokenizer.encode("ok", add_special_tokens=False)))
        streamer.end()
        if self.interrupt:
            raise KeyboardInterrupt


@pytest.fixture
def tokenizer() -> PreTrainedTokenizerBase:
    tokenizer = build_tokenizer()
    tokenizer.chat_template = ROLES
    return tokenizer


Start = Callable[..., tuple[Conversation, RecordingModel]]


@pytest.fixture
def start(tokenizer: PreTrainedTokenizerBase) -> Start:
    def begin(*, most: int = 1000, temperature: float = 0.0) -> tuple[Conversation, RecordingModel]:
        model: Any = RecordingModel(tokenizer, most=most)
        settings = ChatSettings(system_prompt="Hi.", temperature=temperature, max_new_tokens=10)
        return Conversation(model=model, tokenizer=tokenizer, settings=settings), model

    return begin


def ignore(piece: str) -> None:
    pass


def test_prompt_contains_earlier_turns_until_reset(start: Start) -> None:
    conversation, model = start()
    pieces: list[str] = []
    conversation.ask("1?", on_text=pieces.append)
    conversation.ask("2?", on_text=ignore)
    conversation.reset()
    conversation.ask("3?", on_text=ignore)
    assert "".join(pieces) == "ok"
    assert model.prompts == [
        "[system]Hi.[user]1?[assistant]",
        "[system]Hi.[user]1?[assistant]ok[user]2?[assistant]",
        "[system]Hi.[user]3?[assistant]",
    ]


def test_turns_are_lines_without_a_chat_template(
    start: Start, tokenizer: PreTrainedTokenizerBase
) -> None:
    tokenizer.chat_template = None
    conversation, model = start()
    conversation.ask("1?", on_text=ignore)
    conversation.ask("2?", on_text=ignore)
    assert model.prompts[1] == "Hi.\n\n1?\nok\n\n2?\n"


def test_oldest_turns_are_dropped_if_the_context_is_full(start: Start) -> None:
    conversation, model = start(most=60)
    for question in ("1?", "2?", "3?"):
        conversation.ask(question, on_text=ignore)
    assert model.prompts[-1] == "[system]Hi.[user]3?[assistant]"


def test_interrupted_answer_counts_up_to_the_interruption(start: Start) -> None:
    conversation, model = start()
    model.interrupt = True
    with pytest.raises(KeyboardInterrupt):
        conversation.ask("1?", on_text=ignore)
    model.interrupt = False
    conversation.ask("2?", on_text=ignore)
    assert model.prompts[1] == "[system]Hi.[user]1?[assistant]ok[user]2?[assistant]"


def test_question_that_cannot_be_written_as_a_prompt_counts_with_an_empty_answer(
    start: Start, tokenizer: PreTrainedTokenizerBase
) -> None:
    conversation, model = start()
    tokenizer.chat_template = "{{ raise_exception('no') }}"
    with pytest.raises(TemplateError):
        conversation.ask("1?", on_text=ignore)
    tokenizer.chat_template = ROLES
    conversation.ask("2?", on_text=ignore)
    assert model.prompts == ["[system]Hi.[user]1?[assistant][user]2?[assistant]"]


@pytest.mark.parametrize(("temperature", "sampled"), [(0.0, False), (0.7, True)])
def test_sampling_is_greedy_at_temperature_0(
    start: Start, temperature: float, sampled: bool
) -> None:
    conversation, model = start(temperature=temperature)
    conversation.ask("1?", on_text=ignore)
    assert model.sampling["do_sample"] is sampled


def test_real_model_answers_in_pieces() -> None:
    conversation = Conversation(
        model=build_model(TOY, seed=0),
        tokenizer=build_tokenizer(),
        settings=ChatSettings(system_prompt="", temperature=0.7, max_new_tokens=5),
    )
    pieces: list[str] = []
    conversation.ask("1 + 1?", on_text=pieces.append)
    assert pieces
