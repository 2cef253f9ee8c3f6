"""Bodies are decoded in bounded memory, manifests checked before the ledger takes them."""

import contextlib
import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import any_json
from support.probe_runs import MANIFEST
from tandem_server.http.body import Unreadable, decode
from tandem_server.ingest.documents import InvalidManifest, read_manifest

LIMIT = 100_000


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=1000), st.integers(0, 9))
def test_what_was_packed_is_unpacked(text, level):
    raw = text.encode()
    assert decode(raw, None, LIMIT) == text
    assert decode(gzip.compress(raw, level), "gzip", LIMIT) == text
    half = len(raw) // 2
    assert decode(gzip.compress(raw[:half]) + gzip.compress(raw[half:]), "gzip", LIMIT) == text


@given(st.binary(max_size=200), st.sampled_from([None, "identity", "gzip", "br", "deflate"]))
def test_any_body_is_text_or_unreadable(body, encoding):
    with contextlib.suppress(Unreadable):
        assert isinstance(decode(body, encoding, LIMIT), str)


@given(st.data())
def test_a_damaged_body_never_passes_as_whole(data):
    packed = gzip.compress(b"radio rsrp_dbm=-90 1\n" * 20)
    cut = data.draw(st.integers(1, len(packed) - 1))
    with pytest.raises(Unreadable):
        decode(packed[:cut], "gzip", LIMIT)


def test_a_manifest_is_read_and_a_number_that_nobody_else_reads_is_refused():
    assert read_manifest(json.dumps(MANIFEST), "run-1", "probe-1") == MANIFEST
    usage = {"paths": {"a": {"received": 1, "sent": 2}}, "shared_by_pair": False}
    told = {**MANIFEST, "kind": "any", "result": {"answers": 7}, "usage": usage}
    assert read_manifest(json.dumps(told), "run-1", "probe-1") == told
    text = json.dumps({**MANIFEST, "modems": {"a": {"level": 5.5}}})
    assert read_manifest(text, "run-1", "probe-1")["modems"] == {"a": {"level": 5.5}}
    for number in ("1e999", "-1e999", "NaN", "Infinity"):
        with pytest.raises(InvalidManifest, match=f"not JSON: {number} "):
            read_manifest(text.replace("5.5", number), "run-1", "probe-1")


NO_MANIFESTS = [
    ({"format": "tandem-run/2"}, "format"),
    ({"id": "run-2"}, "the address says"),
    ({"probe": "probe-2"}, "the token is"),
    ({"seed": True}, "seed is true"),
    ({"paths": "a"}, "paths is"),
    ({"records": {"subflow": -1}}, "not counts"),
    ({"result": {"bytes": 5}}, "result.duration_s"),
    ({"result": None}, "neither result nor failure"),
    ({"failure": {"reason": "x", "retry": "no"}}, "failure.retry"),
    ({"kind": "sctp"}, "none of the schema's"),
    ({"usage": 5}, "usage is 5"),
    ({"conditions": None}, "conditions is null"),
]


def test_what_is_no_manifest_is_refused_by_name():
    for change, reason in NO_MANIFESTS:
        with pytest.raises(InvalidManifest, match=reason):
            read_manifest(json.dumps({**MANIFEST, **change}), "run-1", "probe-1")
        for key in change.keys() & MANIFEST.keys():
            without = {k: v for k, v in MANIFEST.items() if k != key}
            with pytest.raises(InvalidManifest):
                read_manifest(json.dumps(without), "run-1", "probe-1")


JSON = any_json()


@given(st.dictionaries(st.sampled_from(list(MANIFEST)), JSON, max_size=4), st.text(max_size=20))
def test_any_text_is_a_manifest_or_refused(change, text):
    for candidate in (json.dumps({**MANIFEST, **change}), text, "[" * 100_000):
        with contextlib.suppress(InvalidManifest):
            assert read_manifest(candidate, "run-1", "probe-1")["id"] == "run-1"
