"""The site's keys, and its public chain of records."""

from django.db import models


class SiteKey(models.Model):
    """An Ed25519 key of the site that signs receipts and chain heads; the newest one is in use.

    The private key (32 bytes) is stored in the database, like the secrets of sealed rounds: anyone
    who can read the database can sign for the site.
    """

    private = models.BinaryField(max_length=32, editable=False)
    public = models.CharField(max_length=64, unique=True, editable=False)
    made_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.public


class ChainLink(models.Model):
    """A link of the chain (`swarm_record.chain`); never changed or deleted.

    `line` is published and hashed; `head` is its hash.
    """

    sequence = models.PositiveBigIntegerField(primary_key=True)
    kind = models.CharField(max_length=16)
    round = models.PositiveIntegerField(default=0, help_text="0 for what is about no round.")
    line = models.TextField()
    head = models.CharField(max_length=64)

    class Meta:
        ordering = ["sequence"]
        indexes = [
            models.Index(
                fields=["sequence"], condition=models.Q(kind="restored"), name="restored_links"
            ),
        ]

    def __str__(self) -> str:
        return f"link {self.sequence}"
