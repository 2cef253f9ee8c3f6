"""The units that an image brings: systemd understands them, and they come in their order."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import tandem_image

FILES = Path(tandem_image.__file__).parent / "files"
UNITS = ("tandem-spool.service", "tandem-enrol.service")


def _told(unit: str, key: str) -> set[str]:
    lines = (FILES / unit).read_text().splitlines()
    return {word for line in lines if line.startswith(f"{key}=") for word in line.partition("=")[2].split()}


def test_systemd_understands_them(tmp_path):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd-analyze on this system")
    for unit in UNITS:
        # The programs are not installed here; everything else is as it is.
        (tmp_path / unit).write_text(re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", (FILES / unit).read_text()))
    told = subprocess.run(
        [program, "verify", "--man=no", *(str(tmp_path / unit) for unit in UNITS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (told.returncode, told.stdout + told.stderr) == (0, "")


def test_the_spool_is_mounted_before_any_service_starts_and_after_the_root_is_writable():
    assert {"local-fs.target"} <= _told("tandem-spool.service", "Before")
    assert "systemd-remount-fs.service" in _told("tandem-spool.service", "After")
    assert _told("tandem-spool.service", "DefaultDependencies") == {"no"}


def test_the_image_makes_its_ssh_keys_before_the_server_is_told_them():
    assert "regenerate_ssh_host_keys.service" in _told("tandem-enrol.service", "After")


@pytest.mark.parametrize("name", ["tandem-spool", "firstrun.sh"])
def test_shells_understand_the_scripts(tmp_path, name):
    (tmp_path / "script").write_text(re.sub("@[A-Z]+@", "x", (FILES / name).read_text()))
    assert subprocess.run(["sh", "-n", str(tmp_path / "script")], check=False).returncode == 0
    if shutil.which("shellcheck"):
        told = subprocess.run(["shellcheck", str(tmp_path / "script")], capture_output=True, text=True, check=False)
        assert told.stdout == ""
