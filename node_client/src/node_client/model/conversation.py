"""A conversation with a model: it hears all that was said before, as far as it can hold it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.generation.streamers import TextStreamer

from node_client.model.pretrained import load_pretrained
from node_client.model.prompts import Turn, write_conversation


@dataclass(frozen=True)
class Manner:
    """How a model is to answer: what it is told first, at which temperature (0 is greedy), and how
    many tokens an answer may have.
    """

    system_prompt: str
    temperature: float
    max_new_tokens: int


class Conversation:
    """Asks one model, turn by turn. Not thread-safe."""

    def __init__(
        self, *, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, manner: Manner
    ) -> None:
        self._model: Any = model.eval()  # type: ignore[no-untyped-call]
        self._tokenizer = tokenizer
        self._manner = manner
        self._turns: list[Turn] = []

    @classmethod
    def load(cls, name_or_path: str, *, device: str, manner: Manner) -> Self:
        """Begin with a model by name or path. Raises ModelUnavailableError."""
        model, tokenizer = load_pretrained(name_or_path, device=device, dtype="auto")
        return cls(model=model, tokenizer=tokenizer, manner=manner)

    def reset(self) -> None:
        """Forget what was said."""
        self._turns.clear()

    def ask(self, question: str, *, heard: Callable[[str], None]) -> None:
        """Answer a question; `heard` gets the text piece by piece.

        A KeyboardInterrupt that ends the answer passes through; what was said by then counts.
        """
        self._turns.append(Turn("user", question))
        ids = self._prompt()
        said: list[str] = []

        def listen(piece: str) -> None:
            said.append(piece)
            heard(piece)

        try:
            self._model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=self._manner.max_new_tokens,
                pad_token_id=self._tokenizer.eos_token_id,
                streamer=_Listener(self._tokenizer, listen),
                **self._sampling(),
            )
        finally:
            self._turns.append(Turn("assistant", "".join(said).strip()))

    def _sampling(self) -> dict[str, Any]:
        if self._manner.temperature > 0:
            return {"do_sample": True, "temperature": self._manner.temperature}
        # Switched off, because a model's own generation settings may name them.
        return {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}

    def _prompt(self) -> torch.Tensor:
        """Return the tokens (1, T) of what was said; what no longer fits is forgotten first."""
        most = getattr(self._model.config, "max_position_embeddings", None)
        while True:
            text = write_conversation(
                self._tokenizer, self._turns, system_prompt=self._manner.system_prompt
            )
            ids = self._tokenizer.encode(text, add_special_tokens=False)
            if (
                most is None
                or len(self._turns) == 1
                or len(ids) + self._manner.max_new_tokens <= most
            ):
                return torch.tensor([ids], device=self._model.device)
            del self._turns[:2]  # the oldest question and its answer


class _Listener(TextStreamer):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """Hands decoded text on as soon as it is certain."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, listen: Callable[[str], None]) -> None:
        super().__init__(tokenizer, skip_prompt=True, skip_special_tokens=True)  # type: ignore[no-untyped-call, unused-ignore]
        self._listen = listen

    def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
        """Take a piece of the answer."""
        self._listen(text)
