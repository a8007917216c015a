"""The client's command with a follower that has no memory for a single completion."""

import os
from typing import Any
from unittest.mock import patch

from node_client.cli import app


def fail(*_: Any, **__: Any) -> Any:
    """Raise an error for a lack of memory."""
    raise MemoryError


def main() -> None:
    """Run the client's command."""
    if os.environ["RANK"] == "0":
        app()
    with patch("node_client.model.policy.sample_completions", fail):
        app()


if __name__ == "__main__":
    main()
