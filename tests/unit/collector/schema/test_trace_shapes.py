"""Offers and receipts: what one end writes the other reads; anything else is refused with one line, whatever comes."""

import gzip
import hashlib
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import any_json, said
from support.offers import offer_of
from tandem.schema.trace import (
    LEAST_CHUNK_BYTES,
    Receipt,
    TraceError,
    encoded,
    is_name,
    read_offer,
    read_receipt,
)

ENCODINGS = ("identity", "gzip")
JSON = any_json()
GOOD = offer_of(
    io.BytesIO(bytes(range(256)) * 40), "captures/run-1-a.pcap", "run-1", "gzip", LEAST_CHUNK_BYTES
).as_json()
RECEIPT = Receipt("probe-1", "captures/a.pcap", "run-1", 7, "0" * 64, 1).as_json()


@given(
    st.binary(max_size=20_000), st.sampled_from(ENCODINGS), st.integers(4096, 9000), st.sampled_from([None, "run-1"])
)
def test_an_offer_comes_back_as_it_was_made_and_its_stream_is_the_file(content, encoding, chunk, run):
    offer = offer_of(io.BytesIO(content), "a/b.pcap", run, encoding, chunk)
    assert read_offer(json.loads(json.dumps(offer.as_json()))) == offer
    parts = [encoded(content[at : at + chunk], encoding) for at in range(0, len(content), chunk)]
    assert [(c.bytes, c.sha256) for c in offer.chunks] == [(len(p), hashlib.sha256(p).hexdigest()) for p in parts]
    stream = b"".join(parts)
    assert offer.stream_bytes == len(stream)
    assert (gzip.decompress(stream) if encoding == "gzip" else stream) == content


@given(JSON)
def test_whatever_comes_is_an_offer_or_refused(told):
    with pytest.raises(TraceError):
        read_offer(told)
    with pytest.raises(TraceError):
        read_receipt(told)


@given(st.sampled_from(sorted(GOOD)), JSON)
def test_an_offer_with_one_thing_else_is_read_as_it_says_or_refused(key, value):
    told = {**GOOD, key: value}
    try:
        offer = read_offer(told)
    except TraceError as error:
        assert "\n" not in str(error)  # noqa: PT017  (it may be fine, too)
        return
    assert offer.as_json() == told
    assert is_name(offer.name)


@given(
    st.integers(0, len(GOOD["chunks"]) - 1), JSON | st.lists(st.integers() | st.just("0" * 64), min_size=2, max_size=2)
)
def test_a_chunk_is_a_possible_length_and_a_hash_or_refused(number, row):
    chunks = [*GOOD["chunks"]]
    chunks[number] = row
    try:
        offer = read_offer({**GOOD, "chunks": chunks})
    except TraceError:
        return
    assert 1 <= offer.chunks[number].bytes <= LEAST_CHUNK_BYTES + 100
    assert len(offer.chunks[number].sha256) == 64


def test_offers_names_and_receipts_that_are_and_that_cannot_be():
    tried = [
        *({"bytes": value} for value in (True, -1, 1 << 60, 10240.0)),
        *({"chunk_bytes": value} for value in (1, 1 << 30)),
        *({"chunks": value} for value in ([], GOOD["chunks"] * 2)),
        *({"sha256": value} for value in ("A" * 64, "0" * 63)),
        *({"encoding": value} for value in ("br", ["gzip"], "identity")),
        *({"run": value} for value in ("../x", "")),
        {"format": "tandem-trace/2"},
        {"name": "captures/server/run-1-s.pcap"},  # the server's own
    ]
    assert [wrong for wrong in tried if not said(TraceError, read_offer, {**GOOD, **wrong})] == []
    good = ["a", "captures/run-1-a.pcap", "a/b/c/d/e", "x" * 150, "_a", "0", "a..b", "a.", "/".join(["y" * 40] * 5)]
    assert [name for name in good if not is_name(name)] == []
    bad = [None, 3, b"a", "", "/a", "a/", "a//b", "..", "a/..", ".a", "-a", "a\n", "a/b/c/d/e/f", "x" * 151, "é"]
    assert [name for name in bad if is_name(name)] == []
    for total in (0, 7, 1 << 36):
        receipt = Receipt("probe-1", "captures/a.pcap", None, total, "f" * 64, 1_790_000_000 * 10**9)
        assert read_receipt(json.loads(json.dumps(receipt.as_json()))) == receipt


@given(st.text(alphabet="ab./\\~\x00\n é-_", max_size=30))
def test_a_name_never_leads_out_of_its_folder(name):
    if is_name(name):
        parts = name.split("/")
        assert 1 <= len(parts) <= 5
        assert all(part and part[0] not in ".-" and part.isascii() and part.isprintable() for part in parts)
        assert "\\" not in name
        assert " " not in name


@given(st.sampled_from(sorted(RECEIPT)), JSON)
def test_a_receipt_with_one_thing_else_is_read_as_it_says_or_refused(key, value):
    told = {**RECEIPT, key: value}
    try:
        receipt = read_receipt(told)
    except TraceError:
        return
    assert receipt.as_json() == told
    assert receipt.bytes >= 0
    assert receipt.received_utc_ns >= 0
