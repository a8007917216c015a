"""Base admin of records of events: rows that are never added, edited or deleted by hand."""

from collections.abc import Callable
from typing import TypeVar

from django.contrib.auth import get_permission_codename
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString, mark_safe

from swarm_web.core.unedited_admin import UneditedAdmin

Row = TypeVar("Row", bound=Model)

# How many rows of a list a page shows before it links to all of them.
SHOWN = 20


class RecordAdmin(UneditedAdmin[Row]):
    """An admin of rows that nobody adds, edits or deletes by hand, not even a superuser.

    Actions with the permission `rule` are available to users who may change the model.
    """

    show_full_result_count = False

    def has_delete_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        """Return False: rows are never deleted."""
        return False

    def has_rule_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user may run actions with the permission `rule` on these rows."""
        codename = get_permission_codename("change", self.opts)
        return request.user.has_perm(f"{self.opts.app_label}.{codename}")


def list_url(model: type[Model], **filters: str | int) -> str:
    """Return the address of a model's filtered admin list."""
    path = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    return f"{path}?{urlencode(filters)}"


def show_rows(rows: QuerySet[Row], describe: Callable[[Row], str], *, url: str) -> SafeString:
    """Return the first SHOWN rows as HTML, one per line, with a link to `url`, the list of all.

    Returns "none" if there are no rows.
    """
    total = rows.count()
    if not total:
        return mark_safe("none")
    lines = format_html_join("", "<div>{}</div>", ((describe(row),) for row in rows[:SHOWN]))
    return format_html('{}<a href="{}">all {}, as a list</a>', lines, url, total)
