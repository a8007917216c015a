"""The part of the Hugging Face Hub that downloads of one model need, over HTTP on this machine."""

import hashlib
import json
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.node_client.local_http import LocalServer

COMMIT = "c" * 40


class ModelHub(LocalServer):
    """Offers the files of a folder as the model `name`, and no other model.

    With `xet`, the address of a Xet storage, the hub refers to this storage for the weights.
    """

    def __init__(self, name: str, folder: Path, *, commit: str = COMMIT, xet: str = "") -> None:
        self.name = name
        self.commit = commit
        self.xet = xet
        self.files = {path.name: path.read_bytes() for path in folder.iterdir()}
        self.requested: list[str] = []
        super().__init__(_handler_of(self))

    def describe(self, path: str) -> Any:
        """Return the hub's description of the model, or None for another one."""
        if path.startswith(f"/api/models/{self.name}/tree/"):
            return [
                {"type": "file", "path": name, "size": len(content), "oid": _hash(content)}
                for name, content in self.files.items()
            ]
        if path in (f"/api/models/{self.name}", f"/api/models/{self.name}/revision/main"):
            files = [{"rfilename": name, "size": len(data)} for name, data in self.files.items()]
            return {"id": self.name, "sha": self.commit, "siblings": files}
        return {} if path == "/xet" else None

    def xet_headers(self, path: str) -> dict[str, str]:
        """Return the headers that lead to the Xet storage, for the paths that have them."""
        if self.xet and path == "/xet":
            return {
                "X-Xet-Cas-Url": self.xet,
                "X-Xet-Access-Token": "token",
                "X-Xet-Token-Expiration": "9999999999",
            }
        if self.xet and path.endswith(".safetensors"):
            return {"X-Xet-Hash": "a" * 64, "X-Xet-Refresh-Route": f"{self.address}/xet"}
        return {}

    def find(self, path: str) -> bytes | None:
        """Return the content of a file of the model."""
        return self.files.get(path.removeprefix(f"/{self.name}/resolve/{self.commit}/"))


def _hash(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


def _handler_of(hub: ModelHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def _answer(self, *, with_body: bool) -> None:
            path = urlsplit(self.path).path
            hub.requested.append(path)
            description, content = hub.describe(path), hub.find(path)
            if description is not None:
                content = json.dumps(description).encode()
            self.send_response(404 if content is None else 200)
            if content is None:
                self.send_header("X-Error-Code", "RepoNotFound")
            else:
                self.send_header("X-Repo-Commit", hub.commit)
                self.send_header("ETag", f'"{_hash(content)}"')
            for name, value in hub.xet_headers(path).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            if with_body and content is not None:
                self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
