"""Record database changes of things that must happen once, with triggers."""

from dataclasses import dataclass

from django.db import connection

_SQL = """
CREATE TABLE witness (
    id bigserial PRIMARY KEY, what text, done text, subject text, before text, after text
);
CREATE FUNCTION witness() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO witness (what, done, subject, before, after) VALUES (
        TG_TABLE_NAME, TG_OP, COALESCE(NEW.id, OLD.id)::text,
        to_jsonb(OLD) ->> TG_ARGV[0], to_jsonb(NEW) ->> TG_ARGV[0]
    );
    RETURN NULL;
END $$;
CREATE TRIGGER witness AFTER INSERT OR DELETE OR UPDATE OF score ON judge_answer
    FOR EACH ROW EXECUTE FUNCTION witness('score');
CREATE TRIGGER witness AFTER INSERT OR DELETE OR UPDATE OF score ON judge_score
    FOR EACH ROW EXECUTE FUNCTION witness('score');
CREATE TRIGGER witness AFTER UPDATE OF phase ON judge_round
    FOR EACH ROW EXECUTE FUNCTION witness('phase');
CREATE TRIGGER witness AFTER UPDATE OF watched_at ON judge_season
    FOR EACH ROW EXECUTE FUNCTION witness('watched_at');
"""


@dataclass(frozen=True)
class Seen:
    """One change: the row, and the column's value before and after."""

    place: int
    done: str
    subject: str
    before: str | None
    after: str | None


def install_witness() -> None:
    """Record changes of answers, scores, phases of rounds, and the judge's clock from now on."""
    with connection.cursor() as cursor:
        cursor.execute(_SQL)


def witnessed(table: str) -> list[Seen]:
    """Return the changes of a table, in order."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, done, subject, before, after FROM witness WHERE what = %s ORDER BY id",
            [table],
        )
        return [Seen(*row) for row in cursor.fetchall()]
