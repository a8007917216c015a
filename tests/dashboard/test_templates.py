"""Test that no template uses a method of a dictionary that a key may hide."""

import re

from django.conf import settings

# A lookup finds a key before a method: `{"items": 5}.items` is 5 in a template.
_HIDDEN_BY_KEYS = re.compile(r"\.(items|keys|values|get|pop|copy)\b")
_TAG = re.compile(r"\{[{%].*?[%}]\}", re.DOTALL)


def test_no_template_calls_a_method_of_a_dictionary() -> None:
    calls = [
        (path.name, tag)
        for path in (settings.BASE_DIR / "templates").rglob("*.*")
        for tag in _TAG.findall(path.read_text())
        if _HIDDEN_BY_KEYS.search(tag)
    ]
    assert calls == []
