from django.db import migrations, models

import swarm_web.nodes.titles


class Migration(migrations.Migration):

    dependencies = [
        ("nodes", "0005_node_keys"),
    ]

    operations = [
        migrations.AddField(
            model_name="node",
            name="title",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="What pages call the node, chosen by its owner; its name never changes.",
                max_length=64,
                validators=[swarm_web.nodes.titles.validate_title],
            ),
        ),
    ]
