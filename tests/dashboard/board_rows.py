"""Rows of the leaderboard for tests of reports."""

from swarm_web.board.leaderboard import LeaderboardRow


def make_row(
    node: str, *, model: str = "tiny", score: float = 0.5, n: int = 16, base: bool = False
) -> LeaderboardRow:
    return LeaderboardRow(
        rank=None if base else (1, 9),
        remark="base" if base else "",
        node=node,
        title="",
        model=model,
        parameters=1,
        arm="base" if base else "swarm",
        score=score,
        interval=(score - 0.03, score + 0.04),
        recent_score=score,
        n=n,
        rounds=1,
        missed=0,
        cells={},
        external_used=0,
        used_by_others=0,
        last_seen=None,
        connected=False,
    )
