"""Nothing that the project installs needs a compiler."""

import sys
from importlib.metadata import distributions

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux marks what was compiled locally")
def test_no_installed_package_was_compiled_on_this_machine() -> None:
    compiled = [
        distribution.name
        for distribution in distributions()
        # Wheels of an index are built for `manylinux`, never for plain `linux`.
        if "-linux_" in (distribution.read_text("WHEEL") or "")
    ]
    assert not compiled
