from django.db import migrations, models


def keep_earlier_rule(apps, schema_editor):
    """Turn `isolated_publish` on in started seasons: isolated nodes have shared rollouts there."""
    apps.get_model("judge", "Season").objects.exclude(state="draft").update(isolated_publish=True)


class Migration(migrations.Migration):

    dependencies = [
        ('judge', '0009_stale_summaries'),
    ]

    operations = [
        migrations.AddField(
            model_name='season',
            name='isolated_publish',
            field=models.BooleanField(default=False, help_text='Whether isolated nodes share their rollouts with the swarm, though they take none. Off, they neither give nor take: the comparison is then between training in the swarm and alone, as in the SAPO paper.', verbose_name='isolated nodes publish'),
        ),
        migrations.RunPython(keep_earlier_rule, migrations.RunPython.noop),
    ]
