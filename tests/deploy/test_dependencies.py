"""What the client requires is what was tested, also for participants who install without pins."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version
from transformers.integrations.peft import MIN_PEFT_VERSION

PROJECT = Path(__file__).parent.parent.parent


def requirements_of(extra: str = "") -> dict[str, Requirement]:
    """Return what the client, or one of its extras, requires, by name."""
    project = tomllib.loads((PROJECT / "node_client" / "pyproject.toml").read_text())["project"]
    lines = project["optional-dependencies"][extra] if extra else project["dependencies"]
    return {requirement.name: requirement for requirement in map(Requirement, lines)}


def test_client_accepts_only_the_tested_minor_version_of_transformers() -> None:
    """5.24 renamed arguments that the client uses, and refused all released versions of PEFT."""
    accepted = requirements_of()["transformers"].specifier
    [tested] = [
        Version(line.removeprefix("transformers=="))
        for line in (PROJECT / "constraints.txt").read_text().splitlines()
        if line.startswith("transformers==")
    ]
    assert tested in accepted
    assert Version(f"{tested.major}.{tested.minor + 1}.0") not in accepted


def test_adapters_require_a_version_of_peft_that_transformers_accepts() -> None:
    [least] = requirements_of("lora")["peft"].specifier
    assert least.operator == ">="
    assert Version(least.version) >= Version(MIN_PEFT_VERSION)
