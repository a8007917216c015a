"""A season can use the mix of SAPO's nine datasets that docs/tasks.md gives."""

from pathlib import Path

import msgspec
import pytest

from swarm_protocol.messages import TaskChoice
from swarm_tasks.keyspace import Part, question_part
from swarm_tasks.verifier import Verifier
from tests.tasks.specs import SEED

DOCUMENT = Path(__file__).parents[2] / "docs/tasks.md"
SECTION = DOCUMENT.read_text().split("### The nine datasets of SAPO")[1]
MIX = msgspec.json.decode(SECTION.split("```")[1].removeprefix("json"), type=list[TaskChoice])

# arXiv 2509.08721, section 4.
NINE = """base_conversion basic_arithmetic arc_1d bf propositional_logic fraction_simplification
    decimal_arithmetic calendar_arithmetic binary_matrix"""


def test_mix_has_the_nine_datasets_of_the_paper() -> None:
    assert sorted(choice.dataset for choice in MIX) == sorted(NINE.split())


@pytest.mark.parametrize("choice", MIX, ids=lambda choice: choice.dataset)
def test_every_part_has_questions_of_every_dataset(verifier: Verifier, choice: TaskChoice) -> None:
    for part in Part:
        drawn = verifier.draw(
            key=b"key",
            part=part,
            dataset=choice.dataset,
            config=choice.config,
            seed=SEED,
            counter=0,
        )
        assert question_part(drawn.question) is part
