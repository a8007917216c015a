from django.db import migrations, models

NUMBER_THE_LINES = """
UPDATE judge_standing SET place = numbered.place
FROM (
    SELECT id, row_number() OVER (
        PARTITION BY season_id, "window"
        ORDER BY array_position(ARRAY['', 'too_few', 'base', 'quarantined'], remark::text),
            rank_low NULLS LAST, rank_high NULLS LAST, score DESC, node_id
    ) AS place
    FROM judge_standing
) AS numbered
WHERE judge_standing.id = numbered.id
"""


class Migration(migrations.Migration):

    dependencies = [
        ('judge', '0003_season_system_prompt'),
    ]

    operations = [
        migrations.AddField(
            model_name='standing',
            name='place',
            field=models.PositiveIntegerField(default=0),
            preserve_default=False,
        ),
        migrations.RunSQL(NUMBER_THE_LINES, migrations.RunSQL.noop),
        migrations.AddIndex(
            model_name='standing',
            index=models.Index(fields=['season', 'window', 'place'], name='standings_in_order'),
        ),
    ]
