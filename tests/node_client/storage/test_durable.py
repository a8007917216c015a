"""Flushing waits for what can be flushed and forgives what cannot."""

import errno
import logging
import os
from pathlib import Path

import pytest

from node_client.storage import durable
from node_client.storage.durable import discard, flush


def refuse(handle: object) -> None:
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def test_a_folder_on_a_file_system_that_flushes_none_is_forgiven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", refuse)
    flush(tmp_path)


def test_a_file_that_cannot_be_flushed_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="Invalid"):
        flush(file)


def test_no_folder_is_opened_where_none_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable, "FOLDERS_CAN_BE_FLUSHED", False)
    monkeypatch.setattr(os, "open", refuse)
    flush(tmp_path)


def test_a_folder_that_cannot_be_removed_stays_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        discard(tmp_path / "missing")
    assert "could not be removed" in caplog.text
