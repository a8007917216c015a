"""An answer is on the disk from before it is sent until the judge has it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from node_client.site import Site
from node_client.storage import answers
from node_client.storage.answers import AnswerSpool, PendingAnswer
from swarm_protocol.messages import AnswerText

HERE = Site("https://swarm.org")


def open_spool(folder: Path, *, site: Site = HERE, token: str = "mine") -> AnswerSpool:
    return AnswerSpool(folder / "answers.jsonl", site=site, token=token)


def answer(question: str, *, number: int = 1) -> PendingAnswer:
    return number, AnswerText(question, f"the answer to {question}", "length")


def test_answers_are_pending_until_settled_even_after_a_restart(tmp_path: Path) -> None:
    one, two = answer("one"), answer("two")
    spool = open_spool(tmp_path)
    spool.add([one, two])
    assert open_spool(tmp_path).pending == [one, two]
    spool.settle([one])
    assert spool.pending == open_spool(tmp_path).pending == [two]


def test_settled_question_counts_as_answered_but_its_text_is_deleted(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    spool.add([answer("one"), answer("two")])
    spool.settle([answer("one")])
    assert open_spool(tmp_path).answered(1) == {"one", "two"}
    assert "the answer to one" not in (tmp_path / "answers.jsonl").read_text()


def test_settled_questions_are_kept_for_the_rounds_answered_last(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    # The site lost the rounds 8 and 9 by restoring a backup.
    for question, number in (("lost 8", 8), ("lost 9", 9), ("7", 7), ("8", 8)):
        spool.add([answer(question, number=number)])
        spool.settle([answer(question, number=number)])
    assert open_spool(tmp_path).answered(7) == {"7"}
    assert "8" in open_spool(tmp_path).answered(8)
    assert open_spool(tmp_path).answered(9) == set()


def test_answers_are_pending_only_for_the_node_and_site_that_they_belong_to(tmp_path: Path) -> None:
    open_spool(tmp_path).add([answer("one")])
    assert open_spool(tmp_path, token="another's").pending == []
    assert open_spool(tmp_path, site=Site("https://elsewhere.org")).pending == []


def test_token_is_not_in_the_file(tmp_path: Path) -> None:
    open_spool(tmp_path, token="secret").add([answer("one")])
    assert "secret" not in (tmp_path / "answers.jsonl").read_text()


@pytest.mark.parametrize("damage", [b'{"owner": "ab', b"\xff\xfe", b"{}", b'{"round": "x"}'])
def test_damaged_line_is_skipped_with_a_message(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: bytes
) -> None:
    open_spool(tmp_path).add([answer("one")])
    path = tmp_path / "answers.jsonl"
    path.write_bytes(damage + b"\n" + path.read_bytes())
    assert open_spool(tmp_path).pending == [answer("one")]
    assert "line 1" in caplog.text
    assert "damaged" in caplog.text


def test_partial_line_does_not_affect_other_lines(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    spool.add([answer("one")])
    with (tmp_path / "answers.jsonl").open("ab") as file:
        file.write(b'{"owner": "ab')
    spool.add([answer("two")])
    assert open_spool(tmp_path).pending == [answer("one"), answer("two")]


def test_lines_of_another_version_are_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    open_spool(tmp_path).add([answer("one")])
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"v": 2}) + "\n")
    assert open_spool(tmp_path).pending == []
    assert "another version" in caplog.text


def test_file_size_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MAX_PENDING", 5)
    spool = open_spool(tmp_path)
    for number in range(20):
        questions = [answer(f"{number}-{place}", number=number) for place in range(3)]
        spool.add(questions)
        spool.settle(questions[:1])
    assert len((tmp_path / "answers.jsonl").read_text().splitlines()) == 7
    assert [number for number, _ in spool.pending] == [17, 18, 18, 19, 19]


def test_unwritable_disk_does_not_stop_the_answering(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spool = open_spool(tmp_path / "missing")
    spool.add([answer("one")])
    spool.settle([answer("one")])
    assert spool.answered(1) == {"one"}
    assert "cannot be saved" in caplog.text


def test_answer_is_on_the_disk_before_it_can_be_sent(tmp_path: Path) -> None:
    killed = (
        "import os, signal, sys; from pathlib import Path\n"
        "from tests.node_client.storage.test_answers import answer, open_spool\n"
        "open_spool(Path(sys.argv[1])).add([answer('one')])\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", killed, str(tmp_path)], check=False)
    assert open_spool(tmp_path).pending == [answer("one")]
