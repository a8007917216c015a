"""Updates the translations in `locale/` from the sources, and compiles them.

`python -m swarm_web.catalogues compile` writes the .mo files that Django reads; `update` first
brings the .po files up to date with the sources. Both use Babel instead of gettext's programs, so
that a machine without those can start the site; Django's own `templatize` reads the templates.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS
from babel.messages.extract import extract as find_messages
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from swarm_protocol.errors import FIXES

PROJECT = Path(__file__).resolve().parent.parent
# Folders in `locale/`, as Django names them, and Babel's name of each, which sets the plural forms.
LOCALES = {"zh_Hans": "zh_Hans_CN", "zh_Hant": "zh_Hant_TW", "fa": "fa"}
# Folders of templates that are in English only: those of the admin and of the package index.
_UNTRANSLATED = ("admin", "simple")
_PACKAGES = ("swarm_web", "judge")
_KEYWORDS = {
    **DEFAULT_KEYWORDS,
    "gettext_lazy": None,
    "ngettext_lazy": (1, 2),
    "pgettext_lazy": ((1, "c"), 2),
}
_WIDTH = 100


def catalogue_path(locale: str) -> Path:
    """Return the path of the .po file of one of LOCALES; its .mo file lies beside it."""
    return PROJECT / "locale" / locale / "LC_MESSAGES" / "django.po"


def read_catalogue(locale: str) -> Catalog:
    """Read the .po file of one of LOCALES."""
    with catalogue_path(locale).open("rb") as file:
        return read_po(file, locale=LOCALES[locale])


def extract() -> Catalog:
    """Return a catalogue of all texts that a visitor may read, without translations."""
    catalogue = Catalog(project="Murmuration")
    for path, code in _sources():
        found = find_messages("python", BytesIO(code.encode()), _KEYWORDS, ["Translators:"])
        for _, message, comments, context in found:
            location = (path.relative_to(PROJECT).as_posix(), 0)
            catalogue.add(message, locations=[location], auto_comments=comments, context=context)
    # The remedies for errors: nodes show them in English, pages in the visitor's language.
    for fix in FIXES.values():
        catalogue.add(fix, locations=[("swarm_protocol/errors.py", 0)])
    return catalogue


def update(locale: str) -> None:
    """Bring a .po file up to date, or create it.

    New texts are added without a translation, and texts that are no longer used are removed.
    """
    path = catalogue_path(locale)
    if path.exists():
        catalogue = read_catalogue(locale)
    else:
        catalogue = Catalog(LOCALES[locale], project="Murmuration", fuzzy=False)
    created = catalogue.creation_date
    catalogue.update(extract(), no_fuzzy_matching=True, update_header_comment=False)
    catalogue.obsolete.clear()
    catalogue.creation_date = created  # else every run would change the file
    catalogue.project, catalogue.version = "Murmuration", "site"
    catalogue.msgid_bugs_address = catalogue.last_translator = "the maintainers"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        write_po(file, catalogue, width=_WIDTH, sort_by_file=True, include_lineno=False)


def compile_stale() -> None:
    """Write the .mo files that are missing or not newer than their .po files."""
    for locale in LOCALES:
        source = catalogue_path(locale)
        target = source.with_suffix(".mo")
        if target.exists() and target.stat().st_mtime > source.stat().st_mtime:
            continue
        # A server that starts meanwhile reads the old file or the new one, never half of one.
        with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
            write_mo(file, read_catalogue(locale))
        os.chmod(file.name, 0o644)
        os.replace(file.name, target)


def _sources() -> Iterator[tuple[Path, str]]:
    """Yield the path and the Python code of each file that may contain texts to translate.

    The code of a template is the result of Django's `templatize`.
    """
    for package in _PACKAGES:
        for path in sorted((PROJECT / package).rglob("*.py")):
            yield path, path.read_text()
    # Here, because only extracting needs it.
    from django.utils.translation.template import templatize

    folder = PROJECT / "templates"
    for path in sorted(folder.rglob("*.html")):
        if path.relative_to(folder).parts[0] not in _UNTRANSLATED:
            # In brackets, because the template's indentation is not Python's.
            yield path, f"(\n{templatize(path.read_text())}\n)"


def main(task: str) -> None:
    """Compile the stale catalogues; for the task `update`, first update all of them."""
    if task == "update":
        for locale in LOCALES:
            update(locale)
    compile_stale()


if __name__ == "__main__":
    main(sys.argv[1])
