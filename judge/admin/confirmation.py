"""The confirmation page of an admin action: it lists the effects and asks for a reason."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypedDict, TypeVar

from django import forms
from django.contrib import messages
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


@dataclass(frozen=True)
class Decision(Generic[Row]):
    """A decision about rows that requires a reason.

    `action` is the admin action's name; `title` is the text of its page and button. `effects`
    describe what will happen, and `done` what happened, with {} in place of the row. `apply`
    applies the decision to one row; it returns None, or why nothing changed.
    """

    action: str
    title: str
    effects: Sequence[str]
    done: str
    apply: Callable[[Row, DecisionDetails], str | None]


def decide(
    model_admin: ModelAdmin[Row],
    request: HttpRequest,
    rows: QuerySet[Row],
    decision: Decision[Row],
) -> TemplateResponse | None:
    """Return a page that asks for a reason, or apply the decision if the request has one.

    The result for each row becomes a message of the admin, and None is returned.
    """
    form = ReasonForm(request.POST if "decided" in request.POST else None)
    if not form.is_valid():
        return _ask_reason(model_admin, request, rows, decision, form)
    details = DecisionDetails(
        reason=form.cleaned_data["reason"], actor=_operator(request), now=timezone.now()
    )
    for row in rows:
        problem = decision.apply(row, details)
        if problem is None:
            messages.success(request, decision.done.format(row))
        else:
            messages.warning(request, f"Nothing changed for {row}: {problem}.")
    return None


def _operator(request: HttpRequest) -> User:
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def _ask_reason(
    model_admin: ModelAdmin[Row],
    request: HttpRequest,
    rows: QuerySet[Row],
    decision: Decision[Row],
    form: ReasonForm,
) -> TemplateResponse:
    hidden = [(ACTION_CHECKBOX_NAME, str(row.pk)) for row in rows]
    return ask(
        model_admin,
        request,
        form,
        title=decision.title,
        effects=decision.effects,
        rows=list(rows),
        hidden=[*hidden, ("action", decision.action), ("decided", "yes")],
    )


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
    """Return a page with a form in the admin's style.

    `title` is also the text of its button, and the page lists `effects` and `rows`. `hidden` are
    names and values of hidden fields.
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
