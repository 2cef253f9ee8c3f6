"""tandem-wipe on a card of a probe, mounted in another machine. On a probe: tests/system/test_decommission_playbook.py."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "ansible/roles/decommission/files/tandem-wipe"
GOES = ("etc/tandem/token", "var/lib/tandem/spool/1", "var/lib/tandem/.hidden", "etc/systemd/system/tandem.service")
STAYS = ("etc/ssh/sshd_config", "etc/sudoers.d/tandem", "home/tandem/x")


def wipe(card, *options):
    return subprocess.run(["bash", SCRIPT, *options, card], capture_output=True, text=True, check=False)


@pytest.fixture
def card(tmp_path):
    for name in (*GOES, *STAYS, "etc/NetworkManager/system-connections/My Wi-Fi.nmconnection"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("[Install]\nWantedBy=multi-user.target\n")
    for link, to in {
        "usr/bin/tandem": "/opt/tandem/current/bin/tandem",
        "etc/wireguard/wg-tandem.conf": "../kept",
    }.items():
        (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / link).symlink_to(to)
    (tmp_path / "etc/kept").touch()
    return tmp_path


def test_it_says_what_there_is_and_removes_nothing_unless_told_to(card):
    said = wipe(card)
    assert (said.returncode, sorted(said.stdout.splitlines())) == (
        0,
        [
            "/etc/NetworkManager/system-connections/My Wi-Fi.nmconnection",
            "/etc/systemd/system/tandem.service",
            "/etc/tandem",
            "/etc/wireguard/wg-tandem.conf",
            "/usr/bin/tandem",
            "/var/lib/tandem/.hidden",
            "/var/lib/tandem/spool",
        ],
    )
    assert all((card / name).is_file() for name in (*GOES, *STAYS))


def test_a_card_is_wiped_links_but_not_what_they_lead_to(card):
    said = wipe(card, "--yes")
    assert (said.returncode, len(said.stdout.splitlines())) == (0, 7), said.stderr
    assert [name for name in GOES if (card / name).exists()] == []
    assert not (card / "usr/bin/tandem").is_symlink()
    assert all((card / name).is_file() for name in (*STAYS, "etc/kept"))
    again = wipe(card, "--yes")
    assert (again.returncode, again.stdout) == (0, "")
