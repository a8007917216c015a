"""Public profiles of accounts."""

from django.conf import settings
from django.db import models


class Profile(models.Model):
    """Whether an account has a public profile; without a row here, it has no public profile."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="profile"
    )
    is_public = models.BooleanField(
        default=False, help_text="Whether a page tells everybody which nodes the account owns."
    )

    def __str__(self) -> str:
        return f"profile of {self.user}"
