from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('nodes', '0005_node_keys'),
    ]

    operations = [
        migrations.AddField(
            model_name='node',
            name='said_goodbye',
            field=models.BooleanField(default=False, editable=False, help_text='The client ended its latest connection itself, because it was stopped.'),
        ),
    ]
