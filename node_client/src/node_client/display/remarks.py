"""Why a node is not ranked, in words; the codes are the protocol's (`Standing.remark`)."""

_WORDS = {
    "too_few": "not ranked yet: too few of its questions count so far",
    "often_absent": "not ranked: it missed too many of the rounds that it was invited to",
    "base": "not ranked: an untrained model, shown for comparison",
    "quarantined": "not ranked: the operator took this node out of the ranks; ask there why",
}


def explain_remark(remark: str) -> str:
    """Return a remark in words, and nothing for a ranked node.

    One that only a newer coordinator knows is shown as it is.
    """
    return _WORDS.get(remark, f"not ranked: {remark}") if remark else ""
