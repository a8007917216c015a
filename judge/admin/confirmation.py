"""Admin actions for decisions of the operator: a page shows the effects and asks for a reason."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import wraps
from typing import Any, TypedDict, TypeVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin import ModelAdmin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils import timezone

from judge.forms import ReasonForm

Row = TypeVar("Row", bound=Model)


class DecisionDetails(TypedDict):
    """Who made a decision, why and when."""

    reason: str
    actor: User
    now: datetime


# Applies a decision to one row; returns None, or why nothing changed.
Decision = Callable[[Row, DecisionDetails], str | None]
Action = Callable[[ModelAdmin[Any], HttpRequest, QuerySet[Any]], TemplateResponse | None]


def decision(
    description: str, *, permission: str, title: str, effects: Sequence[str], done: str
) -> Callable[[Decision[Row]], Action]:
    """Return a decorator that turns a decision about one row into an admin action.

    The action first shows a page that asks for a reason. Then it calls the decorated function for
    each selected row. If the function returns None, a message shows the text `done`, with the row
    in place of {}. Otherwise the function returns why nothing changed, and a message shows this.

    `description` is the action's text in the list of actions. `title` is the text of the page's
    heading and button. The page lists `effects`, sentences that say what will happen.
    """

    def make_action(apply: Decision[Row]) -> Action:
        @admin.action(description=description, permissions=[permission])
        @wraps(apply)
        def act(
            model_admin: ModelAdmin[Row], request: HttpRequest, rows: QuerySet[Row]
        ) -> TemplateResponse | None:
            form = ReasonForm(request.POST if "decided" in request.POST else None)
            if not form.is_valid():
                hidden = [(ACTION_CHECKBOX_NAME, str(row.pk)) for row in rows]
                hidden += [("action", apply.__name__), ("decided", "yes")]
                return ask(
                    model_admin,
                    request,
                    form,
                    title=title,
                    effects=effects,
                    rows=list(rows),
                    hidden=hidden,
                )
            if not isinstance(request.user, User):
                raise PermissionDenied
            details = DecisionDetails(
                reason=form.cleaned_data["reason"], actor=request.user, now=timezone.now()
            )
            for row in rows:
                problem = apply(row, details)
                if problem is None:
                    messages.success(request, done.format(row))
                else:
                    messages.warning(request, f"Nothing changed for {row}: {problem}.")
            return None

        return act

    return make_action


def ask(
    model_admin: ModelAdmin[Row],
    request: HttpRequest,
    form: forms.Form,
    *,
    title: str,
    effects: Sequence[str],
    rows: Sequence[Row] = (),
    hidden: Sequence[tuple[str, str]] = (),
) -> TemplateResponse:
    """Return an admin page with a form.

    `title` is the text of the page's heading and button. The page lists `effects`, sentences that
    say what will happen, and `rows`. `hidden` has the name and value of each hidden field.
    """
    context = {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.opts,
        "media": model_admin.media + form.media,
        "form": form,
        "title": title,
        "effects": effects,
        "rows": rows,
        "hidden": hidden,
    }
    return TemplateResponse(request, "admin/judge/ask.html", context)
