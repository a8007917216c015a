"""A package index of the wheels in DIST_DIR (PEP 503), so that pip installs the client that
matches this coordinator: `pip install swarm-node --extra-index-url <site>/simple/`.
"""

import hashlib
import re
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe


def normalise(name: str) -> str:
    """Return a project's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def find_wheels() -> dict[str, list[Path]]:
    """Return the offered wheels by normalised project name."""
    wheels: dict[str, list[Path]] = {}
    for path in sorted(Path(settings.DIST_DIR).glob("*.whl")):
        wheels.setdefault(normalise(path.name.split("-", 1)[0]), []).append(path)
    return wheels


@lru_cache(maxsize=64)
def hash_wheel(path: Path, _modified_ns: int) -> str:
    """Return a wheel's SHA-256, computed once for each state of the file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@require_safe
def list_projects(request: HttpRequest) -> HttpResponse:
    """List the projects that the index has."""
    return render(request, "simple/index.html", {"projects": sorted(find_wheels())})


@require_safe
def list_wheels(request: HttpRequest, project: str) -> HttpResponse:
    """List a project's wheels with their hashes."""
    wheels = find_wheels().get(normalise(project))
    if wheels is None:
        raise Http404(f"no project {project}")
    files = [(path.name, hash_wheel(path, path.stat().st_mtime_ns)) for path in wheels]
    return render(request, "simple/project.html", {"project": project, "files": files})


@require_safe
def serve_wheel(request: HttpRequest, project: str, filename: str) -> HttpResponse:
    """Send one wheel. Only names that the folder lists are opened, so no path leads out of it."""
    for path in find_wheels().get(normalise(project), []):
        if path.name == filename:
            return HttpResponse(path.read_bytes(), content_type="application/octet-stream")
    raise Http404(f"no file {filename}")
