"""Parses a coordinator's address, and gives the addresses of its pages and API."""

import re
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from node_client.errors import SettingsError
from swarm_protocol.joining import DEVICE_CODE_PATH, DEVICE_TOKEN_PATH

_WEB_SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}


@dataclass(frozen=True)
class Site:
    """A coordinator; `base` is its web address without a path, such as `https://swarm.org`."""

    base: str

    @property
    def socket(self) -> str:
        """The address of the node socket."""
        return f"ws{self.base.removeprefix('http')}/ws/node/"

    @property
    def health(self) -> str:
        """The address of the web process's health check."""
        return f"{self.base}/healthz"

    @property
    def folder(self) -> str:
        """A name for the site that is valid as a folder's name on every system."""
        return re.sub(r"[^a-z0-9.-]+", "_", self.base.split("://")[1])

    @property
    def encrypted(self) -> bool:
        """Whether nobody else on the network can read what is sent.

        This is so if the connection is encrypted, or stays on this machine.
        """
        host = urlsplit(self.base).hostname
        return self.base.startswith("https:") or host in ("localhost", "127.0.0.1", "::1")

    def page(self, node: str) -> str:
        """Return the address of a node's page."""
        return f"{self.base}/nodes/{quote(node, safe='')}/"

    def api(self, node: str) -> str:
        """Return the address of a node's figures as JSON."""
        return f"{self.base}/api/v1/nodes/{quote(node, safe='')}"

    @property
    def account(self) -> str:
        """The address of the page with the signed-in user's nodes."""
        return f"{self.base}/account/"

    @property
    def device_code(self) -> str:
        """The address at which a client requests a code, for a person to approve (RFC 8628)."""
        return self.base + DEVICE_CODE_PATH

    @property
    def device_token(self) -> str:
        """The address at which a client exchanges an approved code for its token (RFC 8628)."""
        return self.base + DEVICE_TOKEN_PATH

    def round_record(self, number: int) -> str:
        """Return the address of a judge round's record in JSON."""
        return f"{self.base}/api/v1/rounds/{number}"

    def round_answers(self, number: int) -> str:
        """Return the address of a judge round's answers, one JSON object per line."""
        return f"{self.base}/rounds/{number}/answers.jsonl"

    def round_results(self, number: int) -> str:
        """Return the address of a judge round's results, whose Merkle root is in the chain."""
        return f"{self.base}/rounds/{number}/results.jsonl"

    @property
    def chain(self) -> str:
        """The address of the coordinator's chain of records."""
        return f"{self.base}/rounds/chain.jsonl"

    def round_asked(self, number: int) -> str:
        """Return the address of the digests of all questions asked before round `number`.

        The file has one JSON object per line for each earlier round of the same season. The object
        of a sealed round has no digests.
        """
        return f"{self.base}/rounds/{number}/asked.jsonl"


def parse_site(text: str) -> Site:
    """Return the site of an http, https, ws or wss address; a path in it is ignored.

    Raises SettingsError for an invalid address, and for one with a user name or password.
    """
    try:
        parts = urlsplit(text.strip())
        scheme, host, port = _WEB_SCHEMES.get(parts.scheme), parts.hostname, parts.port
        (host or "").encode("idna")  # as the socket does
    except ValueError:  # an invalid port, an unclosed bracket, two dots in a row
        scheme = host = port = None
    if scheme is None or host is None:
        raise SettingsError(
            f"{text!r} is not the address of a coordinator.",
            fix="Give it as on its join page, for example https://swarm.example.org.",
        )
    if parts.username is not None:
        raise SettingsError(
            "The address contains a user name or a password.",
            fix="Leave them out: a node uses its token instead (see `swarm-node join --help`).",
        )
    shown_host = f"[{host}]" if ":" in host else host
    return Site(base=f"{scheme}://{shown_host}" + (f":{port}" if port is not None else ""))
