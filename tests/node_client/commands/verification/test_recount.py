from node_client.commands.verification.checks import CheckOutcome
from node_client.commands.verification.recount import Recount
from swarm_tasks.verdicts import Verdict
from tests.node_client.commands.verification.rounds import Published


def test_timeout_on_this_machine_is_doubtful(published: Published) -> None:
    recount, [answer, *_] = Recount(published.round), published.lines
    question = recount.add(answer)
    assert question is not None
    recount.compare(answer, question, Verdict(0.0, "timeout"))
    check = recount.check_answers()
    assert check.outcome is CheckOutcome.DOUBTFUL
    assert "1 timed out here, so could not be compared on this machine" in check.compared


def test_verifier_error_on_this_machine_is_a_difference(published: Published) -> None:
    recount, [answer, *_] = Recount(published.round), published.lines
    question = recount.add(answer)
    assert question is not None
    recount.compare(answer, question, Verdict(0.0, "verifier_error"))
    assert recount.check_answers().outcome is CheckOutcome.DIFFERS


def test_giving_up_does_not_forget_a_difference(published: Published) -> None:
    recount, [answer, *_] = Recount(published.round), published.lines
    question = recount.add(answer)
    assert question is not None
    assert recount.skip_answers("broken").outcome is CheckOutcome.UNKNOWN
    recount.compare(answer, question, Verdict(0.0, "wrong"))
    assert recount.skip_answers("broken").outcome is CheckOutcome.DIFFERS
