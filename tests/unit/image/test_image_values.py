"""Values that others must read as they were meant, whatever they are."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_image import ImageError, first_start, settings


def test_the_key_that_wifi_makes_of_a_password_is_the_standards_example(operator_key):
    # IEEE 802.11-2020, J.4.2: passphrase "password", SSID "IEEE".
    wifi = {"country": "DE", "ssid": "IEEE", "password": "password"}
    told = {"tandem_operator_keys": [operator_key], "tandem_server_name": "2001:db8::1", "tandem_wifi": wifi}
    made = settings.settings("kit-01", told)
    assert made.psk == "f42c6fc52df0ebef9ebb4b90b38a5f902e83fe1b135a70e23aed762e9710a12e"
    assert made.gateway == "https://[2001:db8::1]:8443"
    assert made.psk not in repr(made)


@given(st.text())
def test_any_invitation_is_taken_or_refused_in_a_line_without_being_repeated(text):
    for said in (text, json.dumps({"probe": "kit-01", "code": text})):
        with contextlib.suppress(ImageError):
            settings.invitation("kit-01", said)
            continue
        with pytest.raises(ImageError, match=r"^[^\n]+; hint: [^\n]+$"):
            settings.invitation("kit-01", said)


@given(st.text(alphabet=st.characters(min_codepoint=32, exclude_categories=["C"]), min_size=1))
def test_a_key_files_text_is_on_one_line_and_is_what_went_in(text):
    written = first_start.keyfile(text)
    assert "\n" not in written
    read = " " + written[2:] if written.startswith("\\s") else written
    assert read.replace("\\\\", "\\") == text
