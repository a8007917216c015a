import re
from dataclasses import replace

import pytest
import yaml

from node_client.site import Site
from node_client.storage.model_card import JudgeScore, ModelOrigin, write_card

ALONE = ModelOrigin(
    base_model="tiny", step=1200, arm="isolated", season="practice", system_prompt="Answer."
)
SWARM = replace(
    ALONE,
    base_model="Qwen/Qwen2.5-0.5B",
    arm="swarm",
    site=Site("https://swarm.example.org"),
    node="heron",
    season="First light",
    judged=JudgeScore(score=0.5125, interval=(0.48, 0.55), n=1024, rounds=32),
)


def metadata(card: str) -> dict[str, object]:
    found: dict[str, object] = yaml.safe_load(card.split("---")[1])
    return found


def test_card_states_swarm_season_rounds_steps_and_judge_score_with_n() -> None:
    card = write_card(SWARM, title="my model")
    assert "| training steps | 1,200 |" in card
    assert "| swarm | <https://swarm.example.org> |" in card
    assert "| node | [heron](<https://swarm.example.org/nodes/heron/>) |" in card
    assert "| season | First light |" in card
    assert "0.512, 95 % interval 0.480 to 0.550, n = 1,024 questions" in card
    assert "| judge rounds | 32 |" in card
    assert "arxiv.org/abs/2509.08721" in card


def test_hub_metadata_names_the_base_model_only_if_it_is_on_the_hub() -> None:
    assert metadata(write_card(SWARM, title="m"))["base_model"] == "Qwen/Qwen2.5-0.5B"
    assert "base_model" not in metadata(write_card(ALONE, title="m"))
    assert metadata(write_card(ALONE, title="m"))["library_name"] == "transformers"


def test_card_of_a_model_trained_alone_states_no_swarm_and_no_score() -> None:
    card = write_card(ALONE, title="m")
    assert "alone, without a swarm" in card
    assert "judge" not in card
    assert "2509.08721" not in card


def test_card_states_that_the_score_is_unknown() -> None:
    assert "not known when this card was written" in write_card(
        replace(SWARM, judged=None), title="m"
    )


@pytest.mark.parametrize("name", ["<script>x</script>", "a|b", "[x](http://y)", "a\n# b", "`c`"])
def test_foreign_name_is_not_interpreted_as_markdown(name: str) -> None:
    card = write_card(replace(SWARM, season=name), title="m")
    [row] = [line for line in card.splitlines() if line.startswith("| season")]
    assert row.replace("\\|", "").count("|") == 3
    assert not re.search(r"(?<!\\)[<\[`#]", row)
