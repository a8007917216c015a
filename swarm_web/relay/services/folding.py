"""Adds nodes' counts and reports to their contributions, in bulk."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec
from django.db import connection, transaction

from swarm_web.relay.tally import COUNTS, EVIDENCE, TOTALS, Change, Point, SeasonNode

# Rows are created and locked in one order to prevent deadlocks.
_CREATE_ROWS = """
INSERT INTO relay_contribution (node_id, season_id, published, rejected, delivered, step,
    local_used, external_used, external_dropped, used_by_others, declared_checked, declared_false,
    window_checked, window_false, updated_at)
SELECT new.node, new.season, 0, 0, 0, 0, 0, 0, '{}', 0, 0, 0, 0, 0, now()
FROM unnest(%(node)s::bigint[], %(season)s::bigint[]) AS new (node, season)
JOIN nodes_node ON nodes_node.id = new.node
JOIN judge_season ON judge_season.id = new.season
WHERE NOT EXISTS (
    SELECT FROM relay_contribution AS known
    WHERE known.node_id = new.node AND known.season_id = new.season
)
ORDER BY new.season, new.node
ON CONFLICT DO NOTHING
"""

# Totals never fall, and a node cannot use more external rollouts than it was given.
_ADD = """
UPDATE relay_contribution AS part SET
    published = part.published + new.published,
    rejected = part.rejected + new.rejected,
    delivered = part.delivered + new.delivered,
    step = GREATEST(part.step, new.step),
    local_used = GREATEST(part.local_used, new.local_used),
    external_used = LEAST(
        GREATEST(part.external_used, new.external_used), part.delivered + new.delivered
    ),
    training_reward = COALESCE(new.training_reward, part.training_reward),
    informative_share = COALESCE(new.informative_share, part.informative_share),
    external_dropped = COALESCE(new.external_dropped::jsonb, part.external_dropped),
    updated_at = now()
FROM (
    SELECT known.id, given.* FROM unnest(
        %(node)s::bigint[], %(season)s::bigint[], %(published)s::bigint[], %(rejected)s::bigint[],
        %(delivered)s::bigint[], %(step)s::bigint[], %(local_used)s::bigint[],
        %(external_used)s::bigint[], %(training_reward)s::float8[],
        %(informative_share)s::float8[], %(external_dropped)s::text[]
    ) AS given (node, season, published, rejected, delivered, step, local_used, external_used,
        training_reward, informative_share, external_dropped)
    JOIN relay_contribution AS known
        ON known.node_id = given.node AND known.season_id = given.season
    ORDER BY known.id FOR UPDATE OF known
) AS new
WHERE part.id = new.id
"""

# Only nodes with refusals: most nodes need no write.
_ADD_EVIDENCE = """
INSERT INTO relay_conduct (node_id, season_id, refused, copies, hurried, floods, pending, checked,
    worthless, sent_window, check_window, level, charge, bad, total, allowed, findings, pinned)
SELECT new.node, new.season, new.refused, new.copies, new.hurried, new.floods, true, 0,
    0, '{}', '{}', 'full', '', 0, 0, 0, 0, false
FROM unnest(
    %(node)s::bigint[], %(season)s::bigint[], %(refused)s::bigint[], %(copies)s::bigint[],
    %(hurried)s::bigint[], %(floods)s::bigint[]
) AS new (node, season, refused, copies, hurried, floods)
JOIN nodes_node ON nodes_node.id = new.node
JOIN judge_season ON judge_season.id = new.season
ORDER BY new.season, new.node
ON CONFLICT (season_id, node_id) DO UPDATE SET
    refused = relay_conduct.refused + excluded.refused,
    copies = relay_conduct.copies + excluded.copies,
    hurried = relay_conduct.hurried + excluded.hurried,
    floods = relay_conduct.floods + excluded.floods,
    pending = true
"""

_INSERT_POINTS = """
INSERT INTO relay_trainingpoint (node_id, season_id, at, step, training_reward, informative_share,
    reflection)
SELECT new.node, new.season, new.at, new.step, new.training_reward, new.informative_share,
    new.reflection::jsonb
FROM unnest(
    %(node)s::bigint[], %(season)s::bigint[], %(at)s::timestamptz[], %(step)s::bigint[],
    %(training_reward)s::float8[], %(informative_share)s::float8[], %(reflection)s::text[]
) AS new (node, season, at, step, training_reward, informative_share, reflection)
JOIN nodes_node ON nodes_node.id = new.node
JOIN judge_season ON judge_season.id = new.season
"""


def fold_changes(changes: Mapping[SeasonNode, Change], points: Sequence[Point]) -> None:
    """Add changes to contributions and conduct, and store training points, in one transaction.

    Contributions are created if missing. Deleted nodes and seasons are skipped.
    """
    evidence = {key: change for key, change in changes.items() if change.is_evidence}
    columns = _count_columns(changes, COUNTS + TOTALS) | _report_columns(changes)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_CREATE_ROWS, columns)
        cursor.execute(_ADD, columns)
        if evidence:
            cursor.execute(_ADD_EVIDENCE, _count_columns(evidence, EVIDENCE))
        cursor.execute(_INSERT_POINTS, _point_columns(points))


def _count_columns(
    changes: Mapping[SeasonNode, Change], names: Sequence[str]
) -> dict[str, list[object]]:
    """Return columns of the changes by name: `season`, `node`, and the fields in `names`."""
    columns = {name: [getattr(row, name) for row in changes.values()] for name in names}
    seasons, nodes = [season for season, _ in changes], [node for _, node in changes]
    return {"season": seasons, "node": nodes, **columns}


def _report_columns(changes: Mapping[SeasonNode, Change]) -> dict[str, list[object]]:
    reports = [row.report for row in changes.values()]
    return {
        "training_reward": [report and report.training_reward for report in reports],
        "informative_share": [report and report.informative_share for report in reports],
        "external_dropped": [
            report and msgspec.json.encode(report.external_dropped).decode() for report in reports
        ],
    }


def _point_columns(points: Sequence[Point]) -> dict[str, list[object]]:
    return {
        "season": [point.season_node[0] for point in points],
        "node": [point.season_node[1] for point in points],
        "at": [datetime.fromtimestamp(point.at, UTC) for point in points],
        "step": [point.report.step for point in points],
        "training_reward": [point.report.training_reward for point in points],
        "informative_share": [point.report.informative_share for point in points],
        "reflection": [msgspec.json.encode(point.report.reflection).decode() for point in points],
    }
