"""A package index (PEP 503) that is complete: `--index-url SITE/simple/` is enough to install.

Projects with a wheel in DIST_DIR come from this index, and only from it. Requests for any other
project are redirected to PACKAGE_FALLBACK_URL, so that its files never pass through this site.
`/simple/cpu/` is the same, except that requests for torch are redirected to
PACKAGE_TORCH_CPU_URL, which has builds without CUDA.

pip takes the highest version in all indexes that it is given. With `--extra-index-url` it would
take a stranger's `swarm-node` from the public index; with `--index-url` it asks only this index.
"""

import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import HeaderParser
from functools import lru_cache
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Literal, TypeVar

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.http import HttpResponseNotFound as NotFound
from django.http import HttpResponseRedirect as Redirect
from django.shortcuts import render
from django.utils.cache import patch_cache_control
from django.views.decorators.http import condition, conditional_page, require_safe

from swarm_web.dashboard.downloads.batches import stream

_METADATA = re.compile(r"[^/]+\.dist-info/METADATA")
# What zipfile raises for a damaged archive, depending on where the damage is.
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError)
IndexBuild = Literal["any", "cpu"]
Response = TypeVar("Response", bound=HttpResponseBase)
_CHUNK = 1 << 16
# Never redirected: another index may have a project of this name, by somebody else.
_OWN = frozenset({"swarm-node"})
# PEP 508, with the separators as PEP 503 writes them.
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


# ---- wheels


@dataclass(frozen=True)
class Wheel:
    """A wheel that the index offers.

    `metadata` is the content of its METADATA file (PEP 658), empty if it cannot be read.
    """

    path: Path
    sha256: str
    metadata: bytes

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name

    @property
    def metadata_sha256(self) -> str:
        """The SHA-256 of `metadata` in hex; empty without metadata."""
        return sha256(self.metadata).hexdigest() if self.metadata else ""

    @property
    def requires_python(self) -> str:
        """The Python versions that the wheel supports; empty if its metadata names none."""
        return HeaderParser().parsestr(self.metadata.decode()).get("Requires-Python", "")


def normalise(name: str) -> str:
    """Return a project's name in PEP 503's normal form: equal for all spellings of the name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def find_wheels(folder: Path) -> dict[str, list[Path]]:
    """Return the wheels in a folder by normalised project name, each list sorted by file name."""
    wheels: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*.whl")):
        wheels.setdefault(normalise(path.name.split("-", 1)[0]), []).append(path)
    return wheels


def read_wheel(path: Path) -> Wheel:
    """Return a wheel with its hash and metadata. Raises OSError if the file is missing."""
    return _read_wheel(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _read_wheel(path: Path, _modified_ns: int) -> Wheel:
    """Return a wheel; cached until the file's modification time changes."""
    with path.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    return Wheel(path, digest, _read_metadata(path))


def _read_metadata(path: Path) -> bytes:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if _METADATA.fullmatch(name)]
            return archive.read(names[0]) if names else b""
    except _DAMAGED:  # pip reports it as well, with the file's name.
        return b""


# ---- the index


@require_safe
@conditional_page
def list_projects(request: HttpRequest, build: IndexBuild = "any") -> HttpResponse:
    """List the projects of which this site offers wheels."""
    page = "simple-cpu-project" if build == "cpu" else "simple-project"
    context = {"projects": sorted(find_wheels(settings.DIST_DIR)), "page": page}
    return _for_programs(render(request, "simple/index.html", context))


@require_safe
@conditional_page
def list_wheels(request: HttpRequest, project: str, build: IndexBuild = "any") -> HttpResponse:
    """List a project's wheels with their hashes.

    If the site has none, redirect to another index. Its URL is a setting: PACKAGE_TORCH_CPU_URL
    for the project `torch` if `build` is `cpu`, otherwise PACKAGE_FALLBACK_URL. Answer 404 instead
    of redirecting if this setting is empty, if the name is invalid, or if the project is
    `swarm-node`, which only this site may offer.
    """
    name = normalise(project)
    paths = find_wheels(settings.DIST_DIR).get(name)
    if paths is None:
        return _for_programs(_refer(name, build))
    context = {"project": name, "wheels": [read_wheel(path) for path in paths]}
    return _for_programs(render(request, "simple/project.html", context))


@require_safe
@conditional_page
def serve_constraints(_request: HttpRequest) -> HttpResponse:
    """Send the versions that were tested together, as a constraints file (`--constraint URL`)."""
    text = (settings.BASE_DIR / "constraints.txt").read_text()
    return _for_programs(HttpResponse(text, content_type="text/plain; charset=utf-8"))


@require_safe
@conditional_page
def serve_metadata(_request: HttpRequest, project: str, filename: str) -> HttpResponse:
    """Send the METADATA of a wheel (PEP 658). Answer 404 if the wheel or its metadata is missing.

    If an index has no metadata file for a wheel, uv requests a part of the wheel. This site does
    not serve parts, so that request would fail. After one such failure, uv downloads every wheel
    without a metadata file twice, even from other indexes.
    """
    path = _find_wheel(project, filename)
    metadata = read_wheel(path).metadata if path else b""
    if not metadata:
        return _say_missing(f"This index has no metadata of {filename}.")
    return _for_programs(HttpResponse(metadata, content_type="application/octet-stream"))


def _wheel_etag(_request: HttpRequest, project: str, filename: str) -> str | None:
    path = _find_wheel(project, filename)
    return f'"{read_wheel(path).sha256}"' if path else None


@require_safe
@condition(etag_func=_wheel_etag)
def serve_wheel(_request: HttpRequest, project: str, filename: str) -> HttpResponseBase:
    """Stream one wheel."""
    path = _find_wheel(project, filename)
    if path is None:
        return _say_missing(f"This index has no file {filename}.")
    response = StreamingHttpResponse(
        stream(_read(path)),
        content_type="application/octet-stream",
        headers={"Content-Length": str(path.stat().st_size)},
    )
    return _for_programs(response)


def _find_wheel(project: str, filename: str) -> Path | None:
    """Return the project's wheel in DIST_DIR that has this file name; None if there is none.

    Only listed files match, so a name can never lead outside of the folder.
    """
    paths = find_wheels(settings.DIST_DIR).get(normalise(project), [])
    return next((path for path in paths if path.name == filename), None)


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _refer(name: str, build: IndexBuild) -> HttpResponse:
    """Redirect to the other index that may have a project, or answer 404 with the reason."""
    if name in _OWN:
        return _say_missing(
            f"This site offers no wheel of {name} now; its operator can (DIST_DIR)."
        )
    if not _NAME.fullmatch(name):
        return _say_missing("This is not the name of a project.")
    is_cpu_torch = build == "cpu" and name == "torch"
    setting = "PACKAGE_TORCH_CPU_URL" if is_cpu_torch else "PACKAGE_FALLBACK_URL"
    index: str = getattr(settings, setting)
    if not index:
        return _say_missing(f"This site offers no wheel of {name}, and {setting} is empty.")
    return Redirect(f"{index.rstrip('/')}/{name}/")


def _say_missing(reason: str) -> HttpResponse:
    return NotFound(f"{reason}\n", content_type="text/plain")


def _for_programs(response: Response) -> Response:
    """Add headers for search engines and caches to a response, and return the response.

    Search engines must not list the response. Programs must revalidate a cached copy before each
    use, because a wheel may be rebuilt under the same name.
    """
    patch_cache_control(response, no_cache=True)
    response["X-Robots-Tag"] = "noindex"
    return response
