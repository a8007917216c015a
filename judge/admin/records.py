"""Rows that happened: they are looked at, decided about, never edited and never deleted."""

from collections.abc import Callable
from typing import TypeVar

from django.contrib import admin
from django.contrib.auth import get_permission_codename
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString, mark_safe

Row = TypeVar("Row", bound=Model)

# How many rows of a list a page shows before it links to the rest.
SHOWN = 20


class RecordAdmin(admin.ModelAdmin[Row]):
    """Rows that nobody types, not even a superuser.

    Actions that ask for the permission `rule` are for those who may change the model's rows.
    """

    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Rows come into being by what happens."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        """What happened is not edited."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        """What happened stays."""
        return False

    def has_rule_permission(self, request: HttpRequest) -> bool:
        """Tell whether the operator may decide about such rows."""
        codename = get_permission_codename("change", self.opts)
        return request.user.has_perm(f"{self.opts.app_label}.{codename}")


def list_url(model: type[Model], **filters: str | int) -> str:
    """Return the address of the admin's list of a model, filtered."""
    path = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    return f"{path}?{urlencode(filters)}"


def show_rows(rows: QuerySet[Row], describe: Callable[[Row], str], *, url: str) -> SafeString:
    """Show the first rows, a line each, with a link to the list of all of them."""
    total = rows.count()
    if not total:
        return mark_safe("none")
    lines = format_html_join("", "<div>{}</div>", ((describe(row),) for row in rows[:SHOWN]))
    return format_html('{}<a href="{}">all {}, as a list</a>', lines, url, total)
