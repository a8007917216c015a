"""What the client requires is what was tested, also for participants who install without pins."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

PROJECT = Path(__file__).parent.parent.parent


def test_client_accepts_only_the_tested_minor_version_of_transformers() -> None:
    """5.24 renamed arguments that the client uses, and refused all released versions of PEFT."""
    client = tomllib.loads((PROJECT / "node_client" / "pyproject.toml").read_text())
    [accepted] = [
        requirement.specifier
        for requirement in map(Requirement, client["project"]["dependencies"])
        if requirement.name == "transformers"
    ]
    [tested] = [
        Version(line.removeprefix("transformers=="))
        for line in (PROJECT / "constraints.txt").read_text().splitlines()
        if line.startswith("transformers==")
    ]
    assert tested in accepted
    assert Version(f"{tested.major}.{tested.minor + 1}.0") not in accepted
