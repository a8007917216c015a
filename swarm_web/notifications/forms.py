"""Forms for an owner's notification channels."""

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from swarm_web.notifications.models import Channel
from swarm_web.notifications.targets import MAX_LENGTH, TargetError, read_target, read_topic

_PROBLEMS = {
    "invalid": _("Enter an address such as https://host/path, in ASCII and without a username."),
    "scheme": _("The address must begin with https://."),
    "port": _("Only ports 443 and 8443 are allowed."),
    "address": _("This address is not public."),
    "topic": _("The address must be https://HOST/TOPIC."),
}


class EventsForm(forms.Form):
    """Form to choose the events that a channel reports."""

    events = forms.MultipleChoiceField(
        label=_("Notify me when"),
        choices=Channel.Event.choices,
        widget=forms.CheckboxSelectMultiple,
        initial=[Channel.Event.NODE_SILENT],
        error_messages={"required": _("Choose at least one event.")},
    )


class ChannelForm(EventsForm):
    """Form for a new channel. `with_mail` is whether e-mail is offered as a kind."""

    kind = forms.ChoiceField(label=_("Channel type"), widget=forms.RadioSelect)
    target = forms.CharField(
        label=_("Address"),
        required=False,
        max_length=MAX_LENGTH,
        help_text=_(
            "Webhook: the HTTPS address that receives a signed JSON POST. ntfy: the "
            "topic's address, such as https://ntfy.sh/a-name-that-is-hard-to-guess. "
            "E-mail: leave empty."
        ),
        widget=forms.TextInput(
            attrs={
                "inputmode": "url",
                "placeholder": "https://",
                "autocomplete": "off",
                "dir": "ltr",
            }
        ),
    )
    field_order = ["kind", "target", "events"]

    def __init__(self, *args: Any, with_mail: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kinds = [(Channel.Kind.WEBHOOK, _("Webhook")), (Channel.Kind.NTFY, _("ntfy"))]
        mail = [(Channel.Kind.EMAIL, _("E-mail to the account's own address"))]
        kind = self.fields["kind"]
        assert isinstance(kind, forms.ChoiceField)
        kind.choices = [*kinds, *(mail if with_mail else [])]
        kind.initial = Channel.Kind.WEBHOOK

    def clean(self) -> dict[str, Any]:
        """Check the address by the rules of the chosen kind.

        For e-mail, clear the address, because messages go to the account's own address.
        """
        data = super().clean() or {}
        if data.get("kind") == Channel.Kind.EMAIL:
            data["target"] = ""
        elif "target" in data and "kind" in data:
            read = read_topic if data["kind"] == Channel.Kind.NTFY else read_target
            try:
                read(data["target"], private=settings.NOTIFICATION_PRIVATE_TARGETS)
            except TargetError as problem:
                self.add_error("target", str(_PROBLEMS[problem.code]))
        return data
