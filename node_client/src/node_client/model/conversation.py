"""A conversation with a model, which sees as many earlier messages as its context can hold."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.generation.streamers import TextStreamer

from node_client.model.loading.pretrained import load_pretrained
from node_client.model.prompts import ChatMessage, write_conversation


@dataclass(frozen=True)
class ChatSettings:
    """How a model answers: system prompt, temperature (0 is greedy) and tokens per answer."""

    system_prompt: str
    temperature: float
    max_new_tokens: int


class Conversation:
    """A conversation with one model. Not thread-safe."""

    def __init__(
        self, *, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, settings: ChatSettings
    ) -> None:
        self._model: Any = model.eval()  # type: ignore[no-untyped-call]
        self._tokenizer = tokenizer
        self._settings = settings
        self._messages: list[ChatMessage] = []

    @classmethod
    def load(cls, name_or_path: str, *, device: str, settings: ChatSettings) -> Self:
        """Load a model and start a conversation with it. Raises the errors of `load_pretrained`."""
        model, tokenizer = load_pretrained(name_or_path, device=device)
        return cls(model=model, tokenizer=tokenizer, settings=settings)

    def reset(self) -> None:
        """Forget all messages."""
        self._messages.clear()

    def ask(self, question: str, *, on_text: Callable[[str], None]) -> None:
        """Answer a question; `on_text` receives the text piece by piece.

        An exception, such as KeyboardInterrupt, ends the answer and propagates; the text so far is
        kept as the answer.
        """
        self._messages.append(ChatMessage("user", question))
        pieces: list[str] = []

        def receive(piece: str) -> None:
            pieces.append(piece)
            on_text(piece)

        try:
            ids = self._prompt()
            self._model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=self._settings.max_new_tokens,
                pad_token_id=self._tokenizer.eos_token_id,
                streamer=_CallbackStreamer(self._tokenizer, receive),
                **self._sampling(),
            )
        finally:
            self._messages.append(ChatMessage("assistant", "".join(pieces).strip()))

    def _sampling(self) -> dict[str, Any]:
        if self._settings.temperature > 0:
            return {"do_sample": True, "temperature": self._settings.temperature}
        # Unset, because a model's own generation settings may contain them.
        return {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}

    def _prompt(self) -> torch.Tensor:
        """Return the tokens (1, T) of the conversation as a prompt.

        If the prompt is too long for the model, the oldest questions and their answers are
        forgotten.
        """
        limit = getattr(self._model.config, "max_position_embeddings", None)
        while True:
            text = write_conversation(
                self._tokenizer, self._messages, system_prompt=self._settings.system_prompt
            )
            ids = self._tokenizer.encode(text, add_special_tokens=False)
            if (
                limit is None
                or len(self._messages) == 1
                or len(ids) + self._settings.max_new_tokens <= limit
            ):
                return torch.tensor([ids], device=self._model.device)
            del self._messages[:2]  # the oldest question and its answer


class _CallbackStreamer(TextStreamer):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """Passes decoded text on as soon as it is final."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, receive: Callable[[str], None]) -> None:
        super().__init__(tokenizer, skip_prompt=True, skip_special_tokens=True)  # type: ignore[no-untyped-call, unused-ignore]
        self._receive = receive

    def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
        """Pass on a piece of the answer."""
        self._receive(text)
