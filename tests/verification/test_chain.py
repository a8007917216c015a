"""The chain: links that the judge adds, and the client's verification of them."""

import io
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from judge.models import Answer, ChainLink, Round, Seat, SiteKey
from judge.services.answers import Receipt, Submission, store_submissions
from judge.services.oversight import quarantine_node, release_node, void_round
from judge.services.seasons import end_season
from node_client.commands.problems import DOUBTFUL
from node_client.storage.receipts import find_receipts
from swarm_protocol.errors import ErrorCode
from swarm_protocol.messages import AnswerText
from swarm_record.chain import encode_signed_head, follow_chain
from swarm_record.keys import is_signed
from swarm_web.nodes.models import NodeKey
from tests.judge.conftest import log_in
from tests.verification.conftest import Check
from tests.verification.honest import SITE, JudgedSite

pytestmark = pytest.mark.django_db


@pytest.fixture
def site(judged: JudgedSite, tmp_path: Path) -> JudgedSite:
    return judged.copy(tmp_path / "nodes")


def kinds() -> list[str]:
    lines = [line.encode() for line in ChainLink.objects.values_list("line", flat=True)]
    return [linked.link.kind for linked in follow_chain(lines)]


def verify(check: Check, site: JudgedSite, *arguments: str) -> tuple[int, str]:
    result = check(*arguments, folder=site.members["amber"].state.path)
    return result.exit_code, result.output


# ---- links


def test_each_round_adds_three_links(judged: JudgedSite) -> None:
    assert kinds() == ["began", *["scheduled", "answered", "closed"] * 3]


def test_operator_decisions_add_links(site: JudgedSite, check: Check) -> None:
    bold = site.members["bold"].node
    grounds: dict[str, Any] = {"reason": "a test", "actor": None, "now": site.now}
    quarantine_node(bold, **grounds)
    release_node(bold, **grounds)
    quarantine_node(bold, **grounds)
    void_round(Round.objects.get(number=2), **grounds)
    assert kinds()[-4:] == ["quarantined", "released", "quarantined", "void"]
    code, output = verify(check, site, "verify-season")
    assert code == 0, output
    assert "✓ leaderboard  2 lines" in output
    assert "0 void before they were answered, 1 void after" in output


def test_withdrawn_round_is_not_reported_as_missing(site: JudgedSite, check: Check) -> None:
    site.schedule()
    end_season(site.season, now=site.now)
    assert kinds()[-2:] == ["scheduled", "withdrawn"]
    code, output = verify(check, site, "verify-season")
    assert code == 0, output
    assert "1 withdrawn before they opened" in output


def test_round_deleted_without_a_link_is_reported_as_missing(
    site: JudgedSite, check: Check
) -> None:
    Round.objects.filter(number=3).delete()
    code, output = verify(check, site, "verify-season")
    assert code == 1
    assert "round 3: published not listed; here in the chain" in output


def test_downloads_page_shows_the_chain_head(judged: JudgedSite) -> None:
    head = ChainLink.objects.latest("sequence").head
    assert head in Client().get("/downloads/").content.decode()


# ---- backups


def test_restored_backup_is_reported_without_warning_of_changed_commitments(
    site: JudgedSite, check: Check, caplog: pytest.LogCaptureFixture
) -> None:
    lost = ChainLink.objects.get(kind="scheduled", round=3).sequence
    ChainLink.objects.filter(sequence__gte=lost).delete()
    Round.objects.filter(number=3).delete()
    out = io.StringIO()
    call_command("record_restore", reason="the disk failed", stdout=out)
    assert "restored to round 2" in out.getvalue()
    again = site.play()
    assert again.number == 3
    assert "changed its commitment" not in caplog.text
    code, output = verify(check, site, "verify-round", "2")
    assert code == DOUBTFUL, output
    assert "restored to round 2" in output
    assert "the disk failed" in output


def test_commitment_changed_after_a_restore_logs_a_warning(
    site: JudgedSite, caplog: pytest.LogCaptureFixture
) -> None:
    call_command("record_restore", reason="a test", stdout=io.StringIO())
    amber, judge_round = site.members["amber"], site.open()
    judge_round.commitment = "c0" * 32
    amber.note_round(judge_round, now=site.now)
    assert "changed its commitment to round 4" in caplog.text


# ---- keys and signatures


def test_heads_are_signed_with_the_new_site_key_after_rotation(
    site: JudgedSite, check: Check
) -> None:
    old = SiteKey.objects.latest("pk").public
    call_command("rotate_site_key", stdout=io.StringIO())
    site.play()
    noted = site.members["amber"].state.heads.read_bytes().splitlines()
    last = json.loads(noted[-1])
    assert last["key"] == SiteKey.objects.latest("pk").public != old
    stated = encode_signed_head(sequence=last["sequence"], head=last["head"])
    assert is_signed(stated, key=last["key"], signature=last["signature"])
    code, output = verify(check, site, "verify-round", "4")
    assert code == 0, output


def test_private_key_file_is_readable_by_its_owner_only(judged: JudgedSite) -> None:
    state = judged.members["amber"].state
    assert len(state.signing_key()) == 32
    assert (state.path / "signing.key").stat().st_mode & 0o777 == 0o600


def submit(site: JudgedSite, judge_round: Round, answers: list[AnswerText]) -> Receipt:
    amber = site.members["amber"]
    signer = amber.signer(now=site.now)
    (receipt,) = store_submissions(
        [Submission(amber.node.pk, judge_round.number, answers, site.now, signer)]
    )
    assert isinstance(receipt, Receipt)
    return receipt


def test_answer_with_an_invalid_signature_is_rejected_and_not_stored(site: JudgedSite) -> None:
    judge_round = site.open()
    amber = site.members["amber"]
    offered = amber.take(judge_round, now=site.now)
    plain = [AnswerText(asked.id, "1", "stop") for asked in offered.questions]
    first, second, *_ = amber.signing.sign(plain, offered)
    forged = AnswerText(second.question, second.text, "stop", first.signature)
    receipt = submit(site, judge_round, [first, forged])
    assert receipt.accepted == [first.question]
    assert [each.code for each in receipt.rejected] == [ErrorCode.ANSWER_SIGNATURE]
    assert Answer.objects.filter(question__round=judge_round).count() == 1


def test_resubmitted_answer_gets_a_receipt_only_if_it_equals_the_stored_one(
    site: JudgedSite,
) -> None:
    judge_round = site.open()
    amber = site.members["amber"]
    offered = amber.take(judge_round, now=site.now)
    question = offered.questions[0].id
    [first] = amber.signing.sign([AnswerText(question, "1", "stop")], offered)
    [other] = amber.signing.sign([AnswerText(question, "2", "stop")], offered)
    assert submit(site, judge_round, [first]).signed is not None
    assert submit(site, judge_round, [first]).signed is not None
    assert submit(site, judge_round, [other]).signed is None


def test_another_text_with_the_signature_of_the_stored_answer_gets_no_receipt(
    site: JudgedSite,
) -> None:
    judge_round = site.open()
    amber = site.members["amber"]
    offered = amber.take(judge_round, now=site.now)
    [first] = amber.signing.sign([AnswerText(offered.questions[0].id, "1", "stop")], offered)
    submit(site, judge_round, [first])
    forged = AnswerText(first.question, "2", "stop", first.signature)
    receipt = submit(site, judge_round, [forged])
    assert [each.code for each in receipt.rejected] == [ErrorCode.ANSWER_SIGNATURE]
    assert receipt.signed is None


def test_round_with_an_unsigned_node_is_confirmed(site: JudgedSite, check: Check) -> None:
    judge_round = site.open()
    for name in ("amber", "bold"):
        site.answer(judge_round, name, "rrrr")
    calm = site.members["calm"]
    offered = calm.take(judge_round, now=site.now)
    answers = [AnswerText(asked.id, "1", "stop") for asked in offered.questions]
    store_submissions([Submission(calm.node.pk, judge_round.number, answers, site.now)])
    site.close(judge_round)
    code, output = verify(check, site, "verify-round", str(judge_round.number))
    assert code == 0, output
    assert "8 signatures with their keys; 4 without" in output


def test_node_page_and_api_list_old_and_new_keys(judged: JudgedSite) -> None:
    amber = judged.members["amber"].node
    NodeKey.objects.create(node=amber, public="ab" * 32, first_seen=judged.now)
    page = Client().get("/nodes/amber/").content.decode()
    assert [key.public[:16] in page for key in amber.keys.all()] == [True, True]
    assert len(Client().get("/api/v1/nodes/amber").json()["keys"]) == 2


def test_stored_receipts_are_genuine(judged: JudgedSite) -> None:
    [receipt] = find_receipts(judged.members["amber"].state.receipts, site=SITE, number=2)
    assert receipt.is_genuine
    assert len(receipt.answers) == 4


# ---- sealed questions


def test_sealed_questions_are_hidden_from_staff(site: JudgedSite) -> None:
    judge_round, operator = site.open(), log_in()
    page = f"/admin/judge/round/{judge_round.pk}/change/"
    shown = operator.get(page).content.decode()
    for question in judge_round.questions.all():
        assert question.prompt not in shown
        assert str(question.spec["index"]) not in shown
    Seat.objects.filter(round=judge_round).delete()
    site.close(judge_round)
    assert str(judge_round.questions.all()[0].spec["index"]) in operator.get(page).content.decode()


def test_unsealing_a_round_is_recorded_and_reported(site: JudgedSite, check: Check) -> None:
    judge_round, out = site.open(), io.StringIO()
    call_command("unseal_round", str(judge_round.number), reason="a complaint", stdout=out)
    assert all(question.prompt in out.getvalue() for question in judge_round.questions.all())
    for name in site.members:
        site.answer(judge_round, name, "rrrr")
    site.close(judge_round)
    code, output = verify(check, site, "verify-round", str(judge_round.number))
    assert code == DOUBTFUL, output
    assert "the operator read the sealed questions" in output
    with pytest.raises(CommandError, match="already public"):
        call_command("unseal_round", str(judge_round.number), reason="again")


# ---- publication of the head


def test_publish_head_commits_the_head_to_a_git_repository(
    judged: JudgedSite, tmp_path: Path
) -> None:
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "--quiet"], check=True)
    for name, value in (("user.name", "test"), ("user.email", "test@localhost")):
        subprocess.run([*git, "config", name, value], check=True)
    call_command("publish_head", str(tmp_path), "--git", stdout=io.StringIO())
    head = ChainLink.objects.latest("sequence").head
    assert json.loads((tmp_path / "heads.jsonl").read_bytes())["head"] == head
    log = subprocess.run([*git, "log", "--format=%s"], check=True, capture_output=True, text=True)
    assert head in log.stdout
