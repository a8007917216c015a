from django.db import migrations, models

_CHOICES = [("answers-1", "answers-1"), ("answers-2", "answers-2")]
_HELP = (
    "How answers are read (swarm_tasks.answers): the newest way when the season was made, and the "
    "same in all of its rounds."
)


def renew_drafts(apps, schema_editor):
    """Give the new answer rules to drafts; seasons that have started keep theirs."""
    seasons = apps.get_model("judge", "Season").objects
    seasons.filter(state="draft").update(answer_rules="answers-2")


class Migration(migrations.Migration):
    dependencies = [
        ("judge", "0013_ranks_of_a_season"),
    ]

    operations = [
        migrations.AddField(
            model_name="season",
            name="answer_rules",
            field=models.CharField(
                choices=_CHOICES,
                default="answers-1",
                editable=False,
                help_text=_HELP,
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="season",
            name="answer_rules",
            field=models.CharField(
                choices=_CHOICES,
                default="answers-2",
                editable=False,
                help_text=_HELP,
                max_length=16,
            ),
        ),
        migrations.RunPython(renew_drafts, migrations.RunPython.noop),
        migrations.AddField(
            model_name="seat",
            name="grading_seconds",
            field=models.FloatField(
                db_default=0.0,
                default=0.0,
                editable=False,
                help_text="What slow answers cost the verifier (judge.services.patience).",
            ),
        ),
    ]
