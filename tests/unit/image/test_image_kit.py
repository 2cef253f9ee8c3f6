"""./kit image under sudo goes on as the user, so that no file of root's comes into the checkout."""

import os
import subprocess
from pathlib import Path

import pytest

KIT = Path(__file__).parents[3] / "kit"


def test_under_sudo_it_goes_on_as_the_user(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root, as sudo gives it")
    (tmp_path / "sudo").write_text('#!/bin/sh\necho "$*"\n')
    (tmp_path / "sudo").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "SUDO_UID": "1234"}
    asked = subprocess.run(
        [KIT, "image", "kit-01", "--cards"], capture_output=True, text=True, check=True, env=environment
    )
    assert asked.stdout == f"-H -u #1234 -- {KIT} image kit-01 --cards\n"
