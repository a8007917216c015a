"""Flushing waits for what can be flushed and ignores what cannot."""

import errno
import logging
import os
from pathlib import Path

import pytest

from node_client.storage import durable
from node_client.storage.durable import discard, flush


def refuse(handle: object) -> None:
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def test_unsupported_flush_of_a_folder_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", refuse)
    flush(tmp_path)


def test_unsupported_flush_of_a_file_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="Invalid"):
        flush(file)


def test_folder_is_not_opened_if_folders_cannot_be_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable, "FOLDERS_CAN_BE_FLUSHED", False)
    monkeypatch.setattr(os, "open", refuse)
    flush(tmp_path)


def test_folder_that_cannot_be_removed_causes_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        discard(tmp_path / "missing")
    assert "could not be removed" in caplog.text
