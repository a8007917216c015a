"""The form with which a person approves a client's request for a token."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from swarm_web.nodes.models import Node
from swarm_web.nodes.titles import plain_title


class NodeChoiceForm(forms.Form):
    """Form to choose the client's node: a node of `owner`, or a new node with an optional name.

    Blocked nodes cannot be chosen.
    """

    node = forms.ModelChoiceField(
        Node.objects.none(),
        to_field_name="name",
        required=False,
        label=_("Which node is this?"),
        empty_label=_("a new node"),
        help_text=_(
            "Choose one of your nodes to continue it here with its name, scores and "
            "history. Its old token stops working as soon as this machine has the new "
            "one."
        ),
    )
    name = forms.SlugField(
        max_length=64,
        required=False,
        label=_("Name of the new node"),
        help_text=_(
            "Letters, digits, - and _. The name is permanent because it is part of the "
            "public record. You can give the node a title later."
        ),
        error_messages={"invalid": _("Use letters A-Z and a-z, digits, - and _ only.")},
    )

    def __init__(self, *args: Any, owner: User, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        nodes: QuerySet[Node] = Node.objects.filter(owner=owner, blocked=False)
        if nodes.exists():
            self.fields["node"].queryset = nodes  # type: ignore[attr-defined]
        else:
            del self.fields["node"]

    def clean_name(self) -> str:
        """Return the name, which may be empty.

        Raises ValidationError if it is a node's name, or the plain form of a node's title
        (`plain_title`); case is ignored. If two concurrent requests use the same name, the database
        refuses the second.
        """
        name: str = self.cleaned_data["name"]
        taken = Q(name__iexact=name) | Q(title__iexact=name)
        if name and (Node.objects.filter(taken).exists() or _looks_like_a_title(name)):
            raise forms.ValidationError(_("This name is taken. Choose another name."))
        return name


def _looks_like_a_title(name: str) -> bool:
    """Return whether the plain form of a node's title equals a name, ignoring case.

    Titles in ASCII are left out: apart from case, they are their own plain form.
    """
    titles = Node.objects.filter(title__regex="[^ -~]").values_list("title", flat=True)
    return any(plain_title(title) == name.lower() for title in titles)
