"""The demo bases: the bundled ones, and the command that makes them."""

from pathlib import Path

import pytest
import torch

from node_client.model.demo import make_model
from node_client.model.demo.make_model import THINKER_TASKS, Base
from node_client.model.demo.teacher import work_out
from node_client.model.demo.tokenizer import build_tokenizer
from node_client.model.demo.warmup import WarmUpConfig
from node_client.model.loading.pretrained import BASE_MODELS, DEMO_BASES
from node_client.model.policy import Policy
from swarm_protocol.messages import TaskChoice
from swarm_tasks.keyspace import Part
from swarm_tasks.starter import STARTER_SEASON_SEED, STARTER_TASKS
from swarm_tasks.verifier import DrawnTask, StreamPosition, Verifier

SMALL_RECIPE = Base(hidden_size=16, layers=1, heads=2, warm_up=WarmUpConfig(steps=3, batch_size=4))


@pytest.fixture
def quick_bases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(make_model.BASES, "tiny", SMALL_RECIPE)
    monkeypatch.setattr(make_model, "EXAMPLES_PER_DATASET", 4)


def draw(
    verifier: Verifier, choice: TaskChoice, count: int, *, part: Part = Part.TRAINING
) -> list[DrawnTask]:
    """Return questions of a dataset; those of the training part are the first of a warm-up."""
    key, seed = b"warm-up of the demo bases", STARTER_SEASON_SEED
    places = [StreamPosition(choice.dataset, choice.config, place) for place in range(count)]
    return verifier.draw_many(places, key=key, part=part, seed=seed)


@pytest.mark.parametrize("name", ["tiny", "small"])
def test_bundled_base_solves_some_but_not_most_questions(name: str, verifier: Verifier) -> None:
    policy = Policy.load(name, device="cpu")
    tasks = [
        task for choice in STARTER_TASKS for task in draw(verifier, choice, 16, part=Part.HELD_OUT)
    ]
    answers = policy.generate(
        [task.question for task in tasks],
        completions=8,
        max_new_tokens=24,
        temperature=1.0,
        generator=torch.Generator().manual_seed(0),
    )
    groups = [
        [verdict.solved for verdict in verifier.score(task.spec, [answer.text for answer in given])]
        for task, given in zip(tasks, answers, strict=True)
    ]
    solved = sum(map(sum, groups)) / (8 * len(groups))
    informative = sum(0 < sum(group) < 8 for group in groups) / len(groups)
    assert 0.03 < solved < 0.25
    assert informative > 0.2


def test_bundled_bases_were_made_by_the_current_recipe(verifier: Verifier) -> None:
    for name in DEMO_BASES:
        folder = BASE_MODELS / name
        before = (folder / "model.safetensors").stat().st_mtime_ns
        # Would take minutes if the recipe differed; for an unchanged one it returns immediately.
        assert (folder / make_model.RECIPE).read_text() == make_model.describe_recipe(name, seed=0)
        assert make_model.make(name, folder, verifier=verifier) == folder
        assert (folder / "model.safetensors").stat().st_mtime_ns == before


def test_bundled_bases_are_small() -> None:
    files = [path for path in BASE_MODELS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 3 * 2**20


@pytest.mark.usefixtures("quick_bases")
def test_same_seed_makes_the_same_weights(tmp_path: Path, verifier: Verifier) -> None:
    first, second, other = (
        make_model.make("tiny", tmp_path / str(number), verifier=verifier, seed=seed)
        / "model.safetensors"
        for number, seed in enumerate((0, 0, 1))
    )
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes() != other.read_bytes()


@pytest.mark.usefixtures("quick_bases")
def test_progress_is_reported_for_every_step(tmp_path: Path, verifier: Verifier) -> None:
    reported: list[tuple[int, int]] = []
    make_model.make(
        "tiny", tmp_path / "out", verifier=verifier, on_step=lambda *step: reported.append(step)
    )
    assert reported == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.usefixtures("quick_bases")
def test_existing_base_is_not_made_again(tmp_path: Path, verifier: Verifier) -> None:
    out = make_model.make("tiny", tmp_path / "out", verifier=verifier)
    written = (out / "model.safetensors").stat().st_mtime_ns
    make_model.make("tiny", out, verifier=verifier)
    assert (out / "model.safetensors").stat().st_mtime_ns == written


def test_teacher_is_right_for_every_starter_dataset(verifier: Verifier) -> None:
    for choice in STARTER_TASKS:
        for task in draw(verifier, choice, 16):
            answer = work_out(choice.dataset, task.question)
            (verdict,) = verifier.score(task.spec, [f"<answer>{answer}</answer>"])
            assert verdict.solved


def test_thinker_examples_have_worked_sums_and_words_without_working(verifier: Verifier) -> None:
    examples = make_model.draw_examples("thinker", verifier, per_dataset=50)
    sums = [example for example in examples if " = " in example.working]
    words = [example for example in examples if "Spell" in example.question]
    assert (len(examples), len(words)) == (150, 50)
    assert {example.working for example in words} == {""}
    assert 50 < len(sums) < 100
    assert all(example.working.endswith(", ") for example in sums)


def test_most_thinker_examples_are_right_and_fit_into_its_experiment(
    verifier: Verifier,
) -> None:
    examples = make_model.draw_examples("thinker", verifier, per_dataset=50)
    tokenizer = build_tokenizer()
    right = []
    for choice in THINKER_TASKS:
        for task in draw(verifier, choice, 50):
            [example] = [each for each in examples if each.question == task.question][:1]
            text = f"{example.working}<answer>{example.answer}</answer>"
            assert len(tokenizer.encode(text)) < 96
            right += [verdict.solved for verdict in verifier.score(task.spec, [text])]
    assert 0.9 < sum(right) / len(right) < 1


def test_tokenizer_preserves_every_text(verifier: Verifier) -> None:
    tokenizer = build_tokenizer()
    texts = ["<answer>4</answer>", "2 × 3 = 6\n\ttab", "".join(map(chr, range(32, 127))), "日本"]
    for text in texts:
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_answer_tags_are_single_tokens() -> None:
    assert len(build_tokenizer().encode("<answer>4</answer>")) == 3
