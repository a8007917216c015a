from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('nodes', '0006_title'),
    ]

    operations = [
        migrations.AddField(
            model_name='node',
            name='said_goodbye',
            field=models.BooleanField(default=False, editable=False, help_text='The client ended its latest connection itself, because it was stopped.'),
        ),
    ]
