"""The forms of the account pages."""

from typing import Any

from allauth.account.forms import LoginForm
from django import forms
from django.core.validators import MaxLengthValidator
from django.utils.translation import gettext_lazy as _

from swarm_web.edge.login_limit import MAX_NAME_LENGTH
from swarm_web.nodes.models import Node
from swarm_web.nodes.titles import plain_title


class SignInForm(LoginForm):
    """allauth's form for signing in, with another label and a limit on the length of the name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["login"]
        field.label = _("Username or e-mail")
        field.validators.append(MaxLengthValidator(MAX_NAME_LENGTH))
        field.widget.attrs = {"autocomplete": "username", "maxlength": MAX_NAME_LENGTH}


class TitleForm(forms.ModelForm[Node]):
    """Form for a node's title."""

    class Meta:
        model = Node
        fields = ["title"]
        labels = {"title": _("Title")}
        help_texts = {
            "title": _(
                "The name shown on pages, at most 64 characters. You can change it at any time."
            )
        }

    def clean_title(self) -> str:
        """Return the title. Raises ValidationError if it could be mistaken for the name of a node.

        That is the case if the title's plain form (`plain_title`) equals the name of any node,
        ignoring case.
        """
        title: str = self.cleaned_data["title"]
        if Node.objects.filter(name__iexact=plain_title(title)).exists():
            raise forms.ValidationError(_("Another node has this name. Choose another title."))
        return title


class ProfileForm(forms.Form):
    """Form that shows or hides an account's public profile."""

    is_public = forms.BooleanField(required=False, label=_("Show my public profile"))
