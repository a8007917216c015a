from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('judge', '0018_attendance'),
    ]

    operations = [
        migrations.AddField(
            model_name='round',
            name='beacon',
            field=models.JSONField(editable=False, help_text='The value of the public beacon that the rules name (swarm_tasks.beacon).', null=True),
        ),
        migrations.AddField(
            model_name='season',
            name='public_beacon',
            field=models.BooleanField(db_default=False, default=False, help_text="Mix each round's secret with a value that drand, a public source of randomness, publishes after the commitment. So nobody can choose a secret for its questions. Rounds become void while no server of drand can be reached, and need a newer client to be checked."),
        ),
    ]
