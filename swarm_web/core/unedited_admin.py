"""Base class for the admin pages of rows that only the site adds and edits."""

from typing import TypeVar

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

RowT = TypeVar("RowT", bound=Model)


class UneditedAdmin(admin.ModelAdmin[RowT]):
    """An admin of rows that can be deleted, but not added or edited, not even by a superuser."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: only the site adds rows."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: RowT | None = None) -> bool:
        """Return False: nobody may edit rows in the admin."""
        return False
