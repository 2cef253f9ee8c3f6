"""What the role ``base`` writes for a read-only root: units that systemd takes and can order with those around them, times it understands,
what is kept; and the play over probes is between the tasks that make the root writable and read-only again, whatever its tags."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).parents[3]
ROLE, PLAYBOOKS = REPOSITORY / "ansible/roles/base", REPOSITORY / "ansible/playbooks"
DEFAULTS = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
jinja2 = pytest.importorskip("jinja2", reason="pip install -r requirements/lock.txt")
analyze = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")


@analyze
def test_systemd_understands_when_upgrades_come() -> None:
    said = subprocess.run(
        ["systemd-analyze", "calendar", DEFAULTS["base_read_only_upgrades_at"]],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Normalized form: Sun *-*-* 03:00:00" in said.stdout


def entries(tasks: list[dict[str, object]]) -> list[tuple[str, tuple[str, ...]]]:
    """Of base's tasks: which, and under which tags."""
    asked = [
        (task["ansible.builtin.import_role"], task.get("tags", []))
        for task in tasks
        if "ansible.builtin.import_role" in task
    ]
    return [(str(role.get("tasks_from")), tuple(tags)) for role, tags in asked if role["name"] == "base"]


def test_a_play_over_probes_begins_writable_and_ends_read_only() -> None:
    (play,) = (play for play in yaml.safe_load((PLAYBOOKS / "probe.yml").read_text()) if play.get("become"))
    assert entries(play["pre_tasks"]) == [("writable", ("always",))]
    assert entries(play["tasks"][:1]) == [("back", ("always",))]
