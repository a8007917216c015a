"""A custom class replaces a part, and an invalid one is refused with the reason."""

import sys
from pathlib import Path

import pytest

from node_client.errors import SettingsError
from node_client.learning.external.sampling import make_strategy

MODULE = """
from node_client.learning.external.sampling import SamplingStrategy

class Own(SamplingStrategy):
    def weigh(self, groups):
        return [1.0 for _ in groups]

class Failing(Own):
    def __init__(self):
        raise ValueError("no such file")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own_part.py").write_text(MODULE)
    (tmp_path / "torn_part.py").write_text("class Own(")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_part", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("no.such.module:Own", "cannot be imported"),
        ("torn_part:Own", "cannot be imported"),
        ("own_part:Other", "cannot be imported"),
        ("own_part:Failing", "cannot be made: no such file"),
        ("own_part:SamplingStrategy", "cannot be made"),
        # Calling it would end the process.
        ("sys:exit", "is not a SamplingStrategy"),
        ("math:pi", "is not a SamplingStrategy"),
        ("builtins:dict", "is not a SamplingStrategy"),
    ],
)
def test_invalid_class_is_refused_with_a_remedy(name: str, complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint) as problem:
        make_strategy(name)
    assert problem.value.fix
