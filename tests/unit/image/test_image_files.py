"""What an image brings: units that systemd understands, scripts that shells do, values that are read as they were meant."""

import contextlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tandem_image
from tandem_image import ImageError, first_start, settings

FILES = Path(tandem_image.__file__).parent / "files"


def test_shells_understand_the_scripts(tmp_path):
    for name in ("tandem-spool", "firstrun.sh"):
        (tmp_path / "script").write_text(re.sub("@[A-Z]+@", "x", (FILES / name).read_text()))
        assert subprocess.run(["sh", "-n", str(tmp_path / "script")], check=False).returncode == 0
        if shutil.which("shellcheck"):
            told = subprocess.run(["shellcheck", tmp_path / "script"], capture_output=True, text=True, check=False)
            assert told.stdout == ""


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


def _told(unit: str, key: str) -> set[str]:
    lines = (FILES / unit).read_text().splitlines()
    return {word for line in lines if line.startswith(f"{key}=") for word in line.partition("=")[2].split()}


def test_the_spool_is_mounted_before_any_service_starts_and_after_the_root_is_writable():
    assert {"local-fs.target"} <= _told("tandem-spool.service", "Before")
    assert "systemd-remount-fs.service" in _told("tandem-spool.service", "After")
    assert _told("tandem-spool.service", "DefaultDependencies") == {"no"}


def test_the_image_makes_its_ssh_keys_before_the_server_is_told_them():
    assert "regenerate_ssh_host_keys.service" in _told("tandem-enrol.service", "After")
