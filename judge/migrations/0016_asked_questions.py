from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.core.validators import MinValueValidator
from django.db import migrations, models

# The digests of swarm_tasks.asked for the rounds that were made before: the first eight bytes of
# the SHA-256 of each question, as a signed integer.
_DIGEST_QUESTIONS = """
UPDATE judge_round SET digests = asked.digests
FROM (
    SELECT round_id, array_agg(
        ('x' || encode(substring(sha256(convert_to(prompt, 'UTF8')) FROM 1 FOR 8), 'hex'))
            ::bit(64)::bigint
        ORDER BY position
    ) AS digests
    FROM judge_question GROUP BY round_id
) AS asked
WHERE judge_round.id = asked.round_id
"""


class Migration(migrations.Migration):

    dependencies = [
        ('judge', '0015_public_record'),
    ]

    operations = [
        migrations.AddField(
            model_name='round',
            name='digests',
            field=ArrayField(base_field=models.BigIntegerField(), default=list, editable=False, help_text="The questions' digests in order (swarm_tasks.asked).", size=None),
        ),
        migrations.RunSQL(_DIGEST_QUESTIONS, migrations.RunSQL.noop),
        migrations.AddField(
            model_name='season',
            name='halt_reason',
            field=models.TextField(blank=True, default='', editable=False, help_text='Why the judge itself paused the season, and what helps.'),
        ),
        migrations.AddField(
            model_name='season',
            name='planned_rounds',
            field=models.PositiveIntegerField(blank=True, help_text='For how many rounds the mix must have questions, as none is asked twice. Empty: for a year at this cadence.', null=True, validators=[MinValueValidator(1)]),
        ),
        migrations.AddIndex(
            model_name='round',
            index=GinIndex(fastupdate=False, fields=['digests'], name='rounds_by_digest'),
        ),
    ]
