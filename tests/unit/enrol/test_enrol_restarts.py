"""Who enrols anew while collector and tunnel run: systemd is asked to start those anew."""

import os

import pytest
from enrolling import run_script


@pytest.fixture
def asked_of_systemd(tmp_path, monkeypatch):
    """A systemctl that notes what it is asked, knows tandem.service and no other, and what was asked."""
    (tmp_path / "bin").mkdir()
    systemctl = tmp_path / "bin/systemctl"
    systemctl.write_text(
        f'#!/bin/sh\necho "$*" >>{tmp_path}/asked\ncase $* in *tandem.service) exit 0 ;; esac\n'
        'echo "Failed: Unit $3 not found." >&2\nexit 5\n'
    )
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    return lambda: (tmp_path / "asked").read_text().splitlines() if (tmp_path / "asked").exists() else []


def test_what_runs_is_started_anew_with_what_was_enrolled(gateway, tmp_path, asked_of_systemd):
    told = gateway.invite("kit-restart")
    gateway.write_enrol(tmp_path, "kit-restart", told["code"])
    done = run_script(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    both = ["--no-block try-restart tandem.service", "--no-block try-restart tandem-tunnel.service"]
    assert asked_of_systemd() == both
    assert run_script(tmp_path).returncode == 0  # nothing to do, and nothing is disturbed
    assert asked_of_systemd() == both


def test_without_systemd_nobody_is_asked(gateway, tmp_path, asked_of_systemd):
    (tmp_path / "run/systemd/system").rmdir()
    gateway.write_enrol(tmp_path, "kit-chroot", gateway.invite("kit-chroot")["code"])
    assert run_script(tmp_path).returncode == 0
    assert asked_of_systemd() == []


@pytest.mark.usefixtures("asked_of_systemd")
def test_what_systemd_refuses_is_told_and_the_probe_is_enrolled(gateway, tmp_path):
    (tmp_path / "bin/systemctl").write_text("#!/bin/sh\necho 'Access denied' >&2\nexit 4\n")
    gateway.write_enrol(tmp_path, "kit-denied", gateway.invite("kit-denied")["code"])
    done = run_script(tmp_path)
    assert done.returncode == 0
    assert done.stderr.count("Access denied; hint: see there, or start the probe anew") == 2
    assert (tmp_path / "etc/tandem/token").exists()
