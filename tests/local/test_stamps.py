"""Slow steps are done again only when something changed."""

from pathlib import Path

from swarm_web.local.site import fingerprint, is_current


def test_the_same_files_have_the_same_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "site.css").write_text("a")
    assert fingerprint([tmp_path]) == fingerprint([tmp_path])


def test_a_change_a_new_file_and_a_new_version_each_change_it(tmp_path: Path) -> None:
    (tmp_path / "site.css").write_text("a")
    prints = [fingerprint([tmp_path], "5.2")]
    (tmp_path / "site.css").write_text("bc")
    prints.append(fingerprint([tmp_path], "5.2"))
    (tmp_path / "new.css").touch()
    prints.append(fingerprint([tmp_path], "5.2"))
    prints.append(fingerprint([tmp_path], "5.3"))
    assert len(set(prints)) == 4


def test_a_step_that_was_never_done_is_not_current(tmp_path: Path) -> None:
    stamp = tmp_path / "stamp"
    assert not is_current(stamp, "now")
    stamp.write_text("now")
    assert is_current(stamp, "now")
    assert not is_current(stamp, "later")
