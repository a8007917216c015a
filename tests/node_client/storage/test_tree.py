"""Every value in a trainer's state is restored with the same bits and the same type."""

import enum
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from node_client.storage.tree import read_tree, write_tree


def written_and_read(folder: Path, tree: dict[str, Any]) -> dict[str, Any]:
    write_tree(folder, "state", tree)
    return read_tree(folder, "state")


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -(2**80),
        0.1 + 0.2,
        -0.0,
        math.inf,
        "ünï\x00code\n",
        "",
        [],
        {},
        (),
        [1, [2, (3, None)]],
        (0.9, 0.999),
        {0: {"step": 1}, 1: {}},
        {(1, "two"): "tuple as key"},
        {"$tensor": "a user's own word"},
        {"$items": []},
        random.Random(1).getstate(),
    ],
)
def test_plain_values_are_restored(tmp_path: Path, value: object) -> None:
    back = written_and_read(tmp_path, {"value": value})["value"]
    assert back == value
    assert repr(back) == repr(value)


def test_nan_is_restored(tmp_path: Path) -> None:
    assert math.isnan(written_and_read(tmp_path, {"loss": math.nan})["loss"])


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(3.0),
        torch.empty(0, 4),
        torch.randn(3, 5, dtype=torch.bfloat16),
        torch.arange(6).reshape(2, 3).T,
        torch.tensor([True, False]),
        torch.get_rng_state(),
        torch.tensor([math.nan, -0.0]),
    ],
)
def test_tensors_are_restored_bit_for_bit(tmp_path: Path, tensor: torch.Tensor) -> None:
    back = written_and_read(tmp_path, {"deep": [{1: tensor}]})["deep"][0][1]
    assert (back.dtype, back.shape) == (tensor.dtype, tensor.shape)
    assert (
        back.numpy(force=True).tobytes() == tensor.numpy(force=True).tobytes()
        if (tensor.dtype != torch.bfloat16)
        else torch.equal(back, tensor)
    )


def test_tensors_that_share_memory_are_restored(tmp_path: Path) -> None:
    whole = torch.arange(6.0)
    back = written_and_read(tmp_path, {"whole": whole, "part": whole[:2], "again": whole})
    assert torch.equal(back["whole"], whole)
    assert torch.equal(back["again"], whole)
    assert torch.equal(back["part"], whole[:2])


@pytest.mark.parametrize(
    "tree",
    [
        {"a/b": torch.zeros(1), "a": {"b": torch.ones(1)}},
        {"a": {"b": torch.zeros(1)}, "a/b": torch.ones(1), "a/b'": torch.ones(2)},
        {1: torch.zeros(1), "1": torch.ones(1)},
    ],
)
def test_tensors_under_keys_that_form_the_same_path_are_restored(
    tmp_path: Path, tree: dict[Any, Any]
) -> None:
    back = written_and_read(tmp_path, {"state": tree})["state"]
    torch.testing.assert_close(back, tree)


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize("value", [Counter("aa"), {1, 2}, Colour.RED, object(), b"bytes"])
def test_value_that_cannot_be_restored_exactly_is_refused_with_its_place(
    tmp_path: Path, value: object
) -> None:
    with pytest.raises(TypeError, match="history/0"):
        write_tree(tmp_path, "state", {"history": [value]})
