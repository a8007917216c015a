"""A model as a folder: written by a policy, and its weights taken over again."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging

from node_client.model.adapters import check_kind, has_adapters, load_adapters
from node_client.model.halves import Remainders, made_whole, split
from node_client.model.words import Words


def save_model(
    model: PreTrainedModel, words: Words, folder: Path, *, remainders: Remainders
) -> None:
    """Write model and tokenizer as a folder that transformers can read, halves as whole weights."""
    with _no_progress_bars(), made_whole(remainders):
        model.save_pretrained(folder)
        words.save(folder)


def load_weights(model: PreTrainedModel, folder: Path, *, remainders: Remainders) -> None:
    """Take over the weights that `save_model` wrote, keeping the parameters that there are.

    `remainders` are those of a model whose weights are in halves, which are written in float32.

    Raises CheckpointError when the folder has adapters and this model not, or the reverse.
    """
    check_kind(model, folder)
    if has_adapters(model):
        load_adapters(model, folder)
        return
    dtype = torch.float32 if remainders else model.dtype
    with _no_progress_bars():
        saved = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).state_dict()
    model.load_state_dict(saved)
    for name, parameter in model.named_parameters():
        if parameter in remainders:
            split(saved[name].clone(), half=parameter.detach(), remainder=remainders[parameter])


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    """Keep transformers from drawing bars for work on local files over the client's panel."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
