"""Test that translations are complete, consistent with their sources, and compiled."""

import re

import pytest
from babel.messages.catalog import Catalog, Message
from django.utils import translation

from swarm_web.catalogues import LOCALES, PROJECT, catalogue_path, extract, read_catalogue

# Parts that a translation must preserve: placeholders, escaped percent signs, tags.
PRESERVED = re.compile(r"%\(\w+\)s|%%|<[^>]+>|\[\w+\]|%\{[^}]+\}")


@pytest.fixture(scope="module")
def sources() -> Catalog:
    return extract()


def texts(message: Message) -> list[str]:
    """Return all forms of a message's translation."""
    return [message.string] if isinstance(message.string, str) else list(message.string or ())


def originals(message: Message) -> tuple[str, ...]:
    return (message.id,) if isinstance(message.id, str) else tuple(message.id)


def test_no_message_is_inside_an_f_string() -> None:
    """Babel does not find such messages, so they would stay in English."""
    inside = re.compile(r"\{(?:_|p?n?gettext(?:_lazy)?)\(")
    files = [path for app in ("swarm_web", "judge") for path in (PROJECT / app).rglob("*.py")]
    assert [str(path) for path in files if inside.search(path.read_text())] == []


@pytest.mark.parametrize("locale", LOCALES)
def test_every_message_is_translated(sources: Catalog, locale: str) -> None:
    catalogue = read_catalogue(locale)
    lacking = []
    for message in sources:
        known = catalogue.get(originals(message)[0], message.context)
        if message.id and (known is None or known.fuzzy or not all(texts(known))):
            lacking.append(message.id)
    assert lacking == [], "run `make messages` and translate these in locale/"


@pytest.mark.parametrize("locale", LOCALES)
def test_catalogue_has_no_obsolete_messages(sources: Catalog, locale: str) -> None:
    gone = [
        message.id
        for message in read_catalogue(locale)
        if message.id and sources.get(originals(message)[0], message.context) is None
    ]
    assert gone == [], "run `make messages`"


@pytest.mark.parametrize("locale", LOCALES)
def test_translation_preserves_placeholders_and_tags(locale: str) -> None:
    broken = []
    for message in read_catalogue(locale):
        # The plural contains all placeholders; a singular may say “the one node” instead.
        needed = sorted(set(PRESERVED.findall(originals(message)[-1])))
        for text in texts(message) if message.id else ():
            if sorted(set(PRESERVED.findall(text))) != needed:
                broken.append((message.id, text))
    assert broken == []


def test_singular_has_only_placeholders_of_the_plural(sources: Catalog) -> None:
    """Chinese and Persian have one form for both."""
    apart = [
        message.id
        for message in sources
        if message.pluralizable
        and set(PRESERVED.findall(message.id[0])) - set(PRESERVED.findall(message.id[1]))
    ]
    assert apart == []


@pytest.mark.parametrize("locale", LOCALES)
def test_django_loads_the_compiled_catalogue(locale: str) -> None:
    assert catalogue_path(locale).with_suffix(".mo").exists()
    with translation.override(locale.replace("_", "-").lower()):
        assert translation.gettext("Judge score") != "Judge score"
        assert translation.ngettext("%(n)s more swarm node", "%(n)s more swarm nodes", 2)[0] != "%("
