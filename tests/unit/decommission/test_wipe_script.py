"""tandem-wipe: what it finds, what it does not stop, and where it refuses. The whole of it runs in
tests/system/test_decommission_playbook.py."""

from pathlib import Path

import pytest
from program_module import module_of

SCRIPT = Path(__file__).parents[3] / "ansible/roles/decommission/files/tandem-wipe"


@pytest.fixture(scope="module")
def wipe():
    return module_of(SCRIPT)


def test_links_that_lead_nowhere_are_found_and_what_people_need_is_not(wipe, tmp_path):
    for name in (
        "etc/tandem/token",
        "var/lib/tandem/spool/1",
        "etc/ssh/sshd_config",
        "etc/sudoers.d/tandem",
        "home/tandem/x",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/tandem").symlink_to("/opt/tandem/current/bin/tandem")
    found = [str(path.relative_to(tmp_path)) for path in wipe.found(tmp_path)]
    assert found == ["etc/tandem", "usr/bin/tandem", "var/lib/tandem/spool"]


def test_a_link_is_removed_and_not_what_it_leads_to(wipe, tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    assert wipe.remove(tmp_path / "link") is None
    assert (tmp_path / "kept/file").exists()
    assert wipe.remove(tmp_path / "link") is None  # gone already


@pytest.mark.parametrize(
    ("unit", "carries"),
    [
        ("tandem.service", False),
        ("tandem-tunnel.service", True),
        ("wg-quick@wg-tandem.service", True),
    ],
)
def test_the_tunnel_is_not_stopped_under_the_answer(wipe, unit, carries):
    assert wipe.carries_us(unit) == carries


@pytest.mark.parametrize(
    ("mounts", "overlaid"),
    [
        ("/dev/mmcblk0p2 / ext4 rw 0 0\noverlay /usr overlay rw 0 0\n", False),
        ("overlayroot / overlay rw,lowerdir=/a 0 0\n", True),
        ("", False),
        ("x\n", False),
    ],
)
def test_a_root_below_an_overlay_is_seen(wipe, mounts, overlaid):
    assert wipe.overlaid(mounts) == overlaid
