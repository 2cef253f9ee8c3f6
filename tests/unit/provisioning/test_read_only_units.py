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
AROUND = ("firmware/image/src/tandem_image/files/tandem-spool.service", "collector/system/tandem.service")
jinja2 = pytest.importorskip("jinja2", reason="pip install -r requirements/provision.txt")
analyze = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")


def units(folder: Path) -> list[Path]:
    """All of them, as they lie on a probe, but that they start a program which is there."""
    texts = {Path(name).name: (REPOSITORY / name).read_text() for name in AROUND}
    for file in (ROLE / "templates").glob("tandem-root*.j2"):
        template = jinja2.Template(file.read_text(), undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
        texts[file.stem] = template.render(DEFAULTS)
    for name, text in texts.items():
        lines = [
            "ExecStart=/bin/true" if line.startswith("ExecStart=") else line
            for line in text.splitlines()
            if not line.startswith("Documentation=")
        ]
        (folder / name).write_text("\n".join(lines) + "\n")
    (folder / "var-lib-tandem.mount").write_text("[Mount]\nWhat=/dev/x\nWhere=/var/lib/tandem\n")
    return sorted(folder.iterdir())


@analyze
def test_systemd_takes_the_units_and_finds_an_order_for_them(tmp_path: Path) -> None:
    found = units(tmp_path)
    wants = tmp_path / "local-fs.target.wants"
    wants.mkdir()
    for name in ("tandem-root.service", "tandem-spool.service"):
        (wants / name).symlink_to(f"../{name}")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "local-fs.target", *(str(file) for file in found)],
        env={"SYSTEMD_UNIT_PATH": f"{tmp_path}:", "PATH": "/usr/bin:/bin", "SYSTEMD_LOG_LEVEL": "info"},
        capture_output=True,
        text=True,
        check=False,
    )
    ours = [line for line in done.stderr.splitlines() if "tandem" in line or "cycle" in line]
    assert ours == []


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
