from node_client.commands.verification.chain import check_chain, read_chain
from node_client.commands.verification.checks import CheckOutcome


def test_chain_whose_first_link_is_invalid_differs_from_a_missing_chain() -> None:
    missing, invalid = check_chain(None, []), check_chain(read_chain([b"not a link"]), [])
    assert (missing.outcome, invalid.outcome) == (CheckOutcome.SKIPPED, CheckOutcome.DIFFERS)
