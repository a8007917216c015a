from pathlib import Path

import pytest

from node_client.site import Site
from node_client.storage import heads, receipts
from node_client.storage.heads import HeadLog, find_heads, read_heads
from node_client.storage.receipts import ReceiptLog, StoredReceipt, find_receipts
from swarm_protocol.messages import ChainHead, Restored
from swarm_record.answers import AnswerEntry, encode_signed_receipt
from swarm_record.chain import encode_signed_head
from swarm_record.keys import make_key, public_key_of, sign

SITE = Site("https://swarm.org")
PRIVATE = make_key()


def signed_head(
    sequence: int, *, head: str = "9f" * 32, restored: Restored | None = None
) -> ChainHead:
    signature = sign(PRIVATE, encode_signed_head(sequence=sequence, head=head))
    return ChainHead(sequence, head, public_key_of(PRIVATE), signature, restored)


def receipt_of(number: int) -> StoredReceipt:
    entries = [AnswerEntry("amber", 1, "q1", "6" * 64)]
    stated = encode_signed_receipt(entries, number=number, commitment="c0ffee", received_at="now")
    key, signature = public_key_of(PRIVATE), sign(PRIVATE, stated)
    return StoredReceipt(SITE.base, number, "c0ffee", "now", entries, key, signature)


def test_each_head_is_recorded_once_per_site(tmp_path: Path) -> None:
    path = tmp_path / "heads.jsonl"
    for site in (SITE, Site("https://other.org")):
        for _ in range(2):
            log = HeadLog(path, site=site)
            log.record(signed_head(1))
            log.record(signed_head(2))
            log.record(None)
    assert [line.sequence for line in find_heads(path, site=SITE)] == [1, 2]


def test_head_without_a_valid_signature_is_not_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "heads.jsonl"
    HeadLog(path, site=SITE).record(ChainHead(1, "9f" * 32, public_key_of(PRIVATE), "00" * 64))
    assert read_heads(path) == []
    assert "no valid signature" in caplog.text


def test_changed_head_is_recorded_after_one_without_a_valid_signature(tmp_path: Path) -> None:
    log = HeadLog(tmp_path / "heads.jsonl", site=SITE)
    log.record(signed_head(7, head="aa" * 32))
    log.record(ChainHead(7, "bb" * 32, public_key_of(PRIVATE), "00" * 64))
    log.record(signed_head(7, head="cc" * 32))
    assert [line.head[:2] for line in read_heads(tmp_path / "heads.jsonl")] == ["aa", "cc"]


def test_changed_link_is_reported_once_and_both_heads_are_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = HeadLog(tmp_path / "heads.jsonl", site=SITE)
    for head in ("aa", "bb", "cc", "aa"):
        log.record(signed_head(7, head=head * 32))
    assert caplog.text.count("changed link 7") == 1
    assert [line.head[:2] for line in read_heads(tmp_path / "heads.jsonl")] == ["aa", "bb"]


def test_link_undone_by_a_restored_backup_causes_no_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = HeadLog(tmp_path / "heads.jsonl", site=SITE)
    log.record(signed_head(7))
    log.record(signed_head(7, head="bb" * 32, restored=Restored(6, 2)))
    assert "changed" not in caplog.text


def test_head_that_could_not_be_written_is_written_with_the_next(tmp_path: Path) -> None:
    log = HeadLog(tmp_path / "later" / "file", site=SITE)
    log.record(signed_head(1))
    (tmp_path / "later").mkdir()
    log.record(signed_head(2))
    log.record(signed_head(3))
    assert [line.sequence for line in read_heads(tmp_path / "later" / "file")] == [1, 2, 3]


def test_oldest_heads_and_receipts_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads, "MAX_HEADS", 4)
    monkeypatch.setattr(receipts, "MAX_RECEIPTS", 4)
    log, kept = HeadLog(tmp_path / "heads", site=SITE), ReceiptLog(tmp_path / "receipts")
    for number in range(1, 6):
        log.record(signed_head(number))
        kept.append(receipt_of(number))
    assert [line.sequence for line in read_heads(tmp_path / "heads")] == [4, 5]
    assert not find_receipts(tmp_path / "receipts", site=SITE, number=3)
    [last] = find_receipts(tmp_path / "receipts", site=SITE, number=5)
    assert last.is_genuine
