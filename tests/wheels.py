"""Wheels created by tests, and an index that replaces the public one."""

import hashlib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote

_SCRIPT = "def main():\n    print('{name} {version}')\n"


def make_wheel(
    folder: Path,
    project: str,
    version: str,
    *,
    requires: Sequence[str] = (),
    requires_python: str = "",
) -> Path:
    """Write a wheel with one module and a command that prints the project and its version."""
    name = project.replace("-", "_")
    metadata = [f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}"]
    metadata += [f"Requires-Python: {requires_python}"] if requires_python else []
    metadata += [f"Requires-Dist: {requirement}" for requirement in requires]
    about = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": _SCRIPT.format(name=project, version=version),
        f"{about}/METADATA": "\n".join(metadata) + "\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": f"[console_scripts]\n{project} = {name}:main\n",
    }
    record = "".join(f"{path},,\n" for path in [*files, f"{about}/RECORD"])
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in (files | {f"{about}/RECORD": record}).items():
            archive.writestr(path, text)
    return wheel


@dataclass
class PublicIndex:
    """An index like the public one, with relative links with hashes, and PEP 658 metadata.

    `asked` are the requested paths. `lying` are files whose content does not match their hash.
    """

    wheels: Mapping[str, Sequence[Path]]
    url: str = ""
    asked: list[str] = field(default_factory=list)
    lying: set[str] = field(default_factory=set)

    def answer(self, path: str) -> bytes | None:
        """Return the content of a path: a project's page, a wheel or a wheel's metadata."""
        path = unquote(path)
        self.asked.append(path)
        files = {wheel.name: wheel for wheels in self.wheels.values() for wheel in wheels}
        name = path.rpartition("/")[2]
        if path.startswith("/simple/"):
            wheels = self.wheels.get(path.removeprefix("/simple/").strip("/"))
            return None if wheels is None else _list(wheels).encode()
        if name.endswith(".metadata"):
            return _read_metadata(files[name.removesuffix(".metadata")])
        body = files[name].read_bytes()
        # The end of an archive: the length of its comment, and the comment.
        return body[:-2] + b"\x01\x00?" if name in self.lying else body


def _list(wheels: Sequence[Path]) -> str:
    return "".join(
        f'<a href="../../files/{wheel.name}#sha256={_hash(wheel.read_bytes())}"'
        f' data-core-metadata="sha256={_hash(_read_metadata(wheel))}">{wheel.name}</a>'
        for wheel in wheels
    )


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _read_metadata(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(next(n for n in archive.namelist() if n.endswith("/METADATA")))


@contextmanager
def public_index(wheels: Mapping[str, Sequence[Path]]) -> Iterator[PublicIndex]:
    """Serve wheels by project on a free port of this machine."""
    index = PublicIndex(wheels)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = index.answer(self.path)
            self.send_response(404 if body is None else 200)
            is_page = self.path.startswith("/simple/")
            self.send_header("Content-Type", "text/html" if is_page else "application/octet-stream")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        index.url = f"http://127.0.0.1:{server.server_port}/simple/"
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield index
        finally:
            server.shutdown()
