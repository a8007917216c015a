"""Test that no dependency of the project needs a compiler."""

import sys
from importlib.metadata import distributions

import pytest


@pytest.mark.skipif(
    sys.platform != "linux", reason="wheels compiled locally have a tag only on Linux"
)
def test_no_installed_package_was_compiled_on_this_machine() -> None:
    compiled = [
        distribution.name
        for distribution in distributions()
        # Wheels from an index are tagged `manylinux`, never plain `linux`.
        if "-linux_" in (distribution.read_text("WHEEL") or "")
    ]
    assert not compiled
