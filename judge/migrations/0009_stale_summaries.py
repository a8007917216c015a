from django.db import migrations, models


def mark_quarantined(apps, schema_editor):
    """Mark summaries of quarantined nodes' rounds as stale, so they are rebuilt without them."""
    summaries = apps.get_model("judge", "RoundSummary").objects
    summaries.filter(round__scores__node__quarantined=True).update(stale=True)


class Migration(migrations.Migration):

    dependencies = [
        ('judge', '0008_untrained_standings'),
        ('nodes', '0003_hardware'),
    ]

    operations = [
        migrations.AddField(
            model_name='roundsummary',
            name='stale',
            field=models.BooleanField(default=False),
        ),
        migrations.AddIndex(
            model_name='roundsummary',
            index=models.Index(condition=models.Q(('stale', True)), fields=['round'], name='stale_summaries'),
        ),
        migrations.RunPython(mark_quarantined, migrations.RunPython.noop),
    ]
