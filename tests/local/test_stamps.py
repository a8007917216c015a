"""Test that slow steps are repeated only after a change."""

from pathlib import Path

import pytest

from swarm_web.local.site import fingerprint, is_current
from swarm_web.local.stack import fingerprint_static


def test_fingerprint_of_unchanged_files_is_constant(tmp_path: Path) -> None:
    (tmp_path / "site.css").write_text("a")
    assert fingerprint([tmp_path]) == fingerprint([tmp_path])


def test_fingerprint_depends_on_content_files_and_version(tmp_path: Path) -> None:
    (tmp_path / "site.css").write_text("a")
    prints = [fingerprint([tmp_path], "5.2")]
    (tmp_path / "site.css").write_text("bc")
    prints.append(fingerprint([tmp_path], "5.2"))
    (tmp_path / "new.css").touch()
    prints.append(fingerprint([tmp_path], "5.2"))
    prints.append(fingerprint([tmp_path], "5.3"))
    assert len(set(prints)) == 4


def test_stamp_is_current_only_with_the_same_fingerprint(tmp_path: Path) -> None:
    stamp = tmp_path / "stamp"
    assert not is_current(stamp, "now")
    stamp.write_text("now")
    assert is_current(stamp, "now")
    assert not is_current(stamp, "later")


@pytest.mark.parametrize("name", ["DEBUG", "STATIC_ROOT", "STATIC_COMPRESSED"])
def test_static_files_are_collected_again_after_a_setting_changed(name: str) -> None:
    assert fingerprint_static({name: "a"}) != fingerprint_static({name: "b"})
