"""Names fit into addresses: those that do not are renamed, then the database refuses more."""

import re
from itertools import count

from django.db import migrations, models

_SLUG = r"^[-a-zA-Z0-9_]+$"


def rename(apps, schema_editor):
    """Give nodes with other names one of their letters and a number.

    Pages that listed such a node failed, so nobody has linked to it; its token, scores and
    contributions belong to its key and stay.
    """
    nodes = apps.get_model("nodes", "Node").objects
    for node in nodes.exclude(name__regex=_SLUG):
        slug = re.sub(r"[^-a-zA-Z0-9_]+", "-", node.name).strip("-")[:40] or "node"
        free = (f"{slug}-{number}" for number in count(node.pk))
        node.name = next(name for name in free if not nodes.filter(name=name).exists())
        node.save(update_fields=["name"])


class Migration(migrations.Migration):

    dependencies = [
        ("nodes", "0003_hardware"),
    ]

    operations = [
        migrations.RunPython(rename, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name="node",
            constraint=models.CheckConstraint(
                condition=models.Q(name__regex=_SLUG), name="node_name_is_a_slug"
            ),
        ),
    ]
