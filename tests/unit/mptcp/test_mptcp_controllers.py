"""What a controller is, by the note that loading leaves: also where the note is none."""

import json

import pytest

from tandem.mptcp_abi.controllers import described


def test_a_noted_one_is_bpf_with_its_object_another_is_the_kernels(tmp_path):
    note = tmp_path / "loaded.json"
    note.write_text(json.dumps({"controllers": ["lia"], "object_sha256": "ab"}))
    assert described("lia", note) == {"name": "lia", "kind": "bpf", "object_sha256": "ab"}
    assert described("cubic", note) == {"name": "cubic", "kind": "kernel", "object_sha256": None}
    assert described(None, note) is None


@pytest.mark.parametrize(
    "text", [None, "", "{", "[]", "{}", '{"controllers": 1, "object_sha256": "ab"}', '{"controllers": ["lia"]}']
)
def test_a_note_that_is_none_claims_nothing(tmp_path, text):
    note = tmp_path / "loaded.json"
    if text is not None:
        note.write_text(text)
    assert described("lia", note) == {"name": "lia", "kind": "kernel", "object_sha256": None}
