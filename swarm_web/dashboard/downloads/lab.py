"""Downloads of a lab report: its numbers, its experiment, and its raw runs as one archive."""

import io
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    StreamingHttpResponse,
)
from django.views.decorators.http import condition, require_safe

from swarm_web.dashboard.downloads.batches import stream
from swarm_web.dashboard.reports.lab import load_published
from swarm_web.lab.shelf import ReportFolder, read_bytes, version_of

FILES = {
    "report.json": "application/json",
    "experiment.toml": "application/toml; charset=utf-8",
}
_CHUNK = 1 << 18
# Runs are already compressed: a higher level would not make them smaller.
_COMPRESSION_LEVEL = 1
_GZIP_WBITS = 31


def _file_version(_request: HttpRequest, name: str, file: str) -> str | None:
    path = load_published(name).file(file)
    return None if path is None else version_of([path])


def _runs_version(_request: HttpRequest, name: str) -> str | None:
    return version_of(_archived(load_published(name)))


@require_safe
@condition(etag_func=_file_version)
def download_lab_file(_request: HttpRequest, name: str, file: str) -> HttpResponse:
    """Send one of a report's FILES. Raises Http404 if it is missing or cannot be read."""
    path = load_published(name).file(file)
    if path is None:
        raise Http404
    try:
        content = read_bytes(path)
    except (OSError, ValueError) as problem:
        raise Http404 from problem
    headers = {"Content-Disposition": f'attachment; filename="{name}-{file}"'}
    return HttpResponse(content, content_type=FILES[file], headers=headers)


@require_safe
@condition(etag_func=_runs_version)
def download_lab_runs(_request: HttpRequest, name: str) -> HttpResponseBase:
    """Stream an archive of the experiment and its raw runs: the input of `swarm-node lab report`.

    Raises Http404 if the report or its runs are missing.
    """
    published = load_published(name)
    if not published.runs():
        raise Http404
    return StreamingHttpResponse(
        stream(archive(name, _archived(published))),
        content_type="application/gzip",
        headers={"Content-Disposition": f'attachment; filename="{name}-runs.tar.gz"'},
    )


def archive(name: str, paths: Sequence[Path]) -> Iterator[bytes]:
    """Yield the parts of a .tar.gz that has the files at `paths` in a folder called `name`.

    In this folder, all files except .toml files are in a subfolder `runs`. The same files always
    give the same bytes.
    """
    compressor = zlib.compressobj(_COMPRESSION_LEVEL, wbits=_GZIP_WBITS)
    for path in paths:
        with path.open("rb") as file:
            folder = "" if path.suffix == ".toml" else "runs/"
            entry = tarfile.TarInfo(f"{name}/{folder}{path.name}")
            entry.size = file.seek(0, io.SEEK_END)
            file.seek(0)
            yield compressor.compress(entry.tobuf())
            remaining = entry.size
            while remaining and (chunk := file.read(min(_CHUNK, remaining))):
                remaining -= len(chunk)
                yield compressor.compress(chunk)
            # A file that became shorter is padded: its header was already sent.
            yield compressor.compress(bytes(remaining + -entry.size % tarfile.BLOCKSIZE))
    yield compressor.compress(bytes(2 * tarfile.BLOCKSIZE))
    yield compressor.flush()


def _archived(published: ReportFolder) -> list[Path]:
    settings = published.file("experiment.toml")
    return [*([settings] if settings else []), *published.runs()]
