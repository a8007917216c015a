"""Marks in texts that are written for several readers, such as the OpenAPI document's."""

import re

from django import template
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe

register = template.Library()

_CODE = re.compile(r"`([^`]+)`")


@register.filter
def code(text: str) -> SafeString:
    """Set what stands between backticks as code."""
    return mark_safe(_CODE.sub(r"<code>\1</code>", conditional_escape(text)))  # Escaped above.
