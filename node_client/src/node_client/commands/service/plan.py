"""What a service of a node is: which command it runs, where, and how it is called. Pure."""

from dataclasses import dataclass
from pathlib import Path

from node_client.site import Site


@dataclass(frozen=True)
class Plan:
    """One node as a service of its user. Paths are absolute; there is no token in it."""

    site: Site
    python: Path
    state: Path
    config: Path | None = None
    auto_update: bool = False

    @property
    def name(self) -> str:
        """What the service is called: one for each coordinator."""
        return f"swarm-node@{self.site.folder}"

    @property
    def command(self) -> list[str]:
        """The words of the command that the service runs."""
        words = [str(self.python), "-m", "node_client", "service", "run", self.site.base]
        words += ["--state-dir", str(self.state)]
        if self.config is not None:
            words += ["--config", str(self.config)]
        return [*words, "--auto-update"] if self.auto_update else words
