"""The part of the Hugging Face Hub that an upload needs, over HTTP on this machine."""

import base64
import json
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.node_client.local_http import LocalServer


class HubOnThisMachine(LocalServer):
    """Records repositories, commits and tokens; with `refuse`, answers everything with 403."""

    def __init__(self) -> None:
        self.made: dict[str, Any] = {}
        self.commits: list[tuple[str, dict[str, bytes]]] = []
        self.tokens: set[str] = set()
        self.refuse = False
        super().__init__(_handler_of(self))

    def answer(self, path: str, body: bytes) -> dict[str, Any]:
        """Return the hub's response to a POST request."""
        if path == "/api/repos/create":
            request = json.loads(body)
            self.made = {name: request.get(name) for name in ("name", "organization", "visibility")}
            return {"url": f"{self.address}/me/model"}
        if "/preupload/" in path:
            return {
                "files": [
                    {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
                    for file in json.loads(body)["files"]
                ]
            }
        if "/commit/" in path:
            return self._commit([json.loads(line) for line in body.splitlines()])
        return {}

    def _commit(self, lines: list[dict[str, Any]]) -> dict[str, Any]:
        [summary] = [line["value"]["summary"] for line in lines if line["key"] == "header"]
        files = [line["value"] for line in lines if line["key"] == "file"]
        self.commits.append(
            (summary, {file["path"]: base64.b64decode(file["content"]) for file in files})
        )
        return {"commitUrl": f"{self.address}/me/model/commit/abc", "commitOid": "abc"}


def _handler_of(hub: HubOnThisMachine) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            hub.tokens.add(self.headers["Authorization"])
            answer = {} if hub.refuse else hub.answer(self.path, body)
            content = json.dumps(answer).encode()
            self.send_response(403 if hub.refuse else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
