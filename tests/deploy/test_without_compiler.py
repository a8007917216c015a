"""Nothing that the project installs needs a compiler."""

import os
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

from tests.deploy.compose import ROOT
from tests.web import serving


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux marks what was compiled locally")
def test_no_installed_package_was_compiled_on_this_machine() -> None:
    compiled = [
        distribution.name
        for distribution in distributions()
        # Wheels of an index are built for `manylinux`, never for plain `linux`.
        if "-linux_" in (distribution.read_text("WHEEL") or "")
    ]
    assert not compiled


@pytest.mark.slow
def test_a_participant_without_a_compiler_gets_pycosat_from_the_site(
    transactional_db: None, tmp_path: Path
) -> None:
    wheels, target, no_programs = (tmp_path / name for name in ("wheels", "target", "bin"))
    no_programs.mkdir()
    pip = [sys.executable, "-m", "pip", "--quiet"]
    build = [*pip, "wheel", "--no-deps", "--wheel-dir", str(wheels)]
    subprocess.run([*build, str(ROOT / "node_client" / "pycosat")], check=True)
    with serving(DIST_DIR=str(wheels)) as site:
        install = [*pip, "--no-cache-dir", "install", "--no-deps", "--target", str(target)]
        subprocess.run(
            [*install, "--extra-index-url", f"{site}/simple/", "pycosat==0.6.6"],
            env=os.environ | {"PATH": str(no_programs)},
            check=True,
        )
    assert [path.name for path in target.glob("pycosat.*")] == ["pycosat.py"]
