"""The playbooks: as a collection, for an Ansible of one's own (built, installed, by full names); rolled out to one probe first, then a
tenth, then half at a time, and no further than the first that fails; between the tasks that make a root writable and read-only again,
whatever their tags, with upgrades when systemd understands them to be."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ANSIBLE = Path(__file__).parents[3] / "ansible"
NAMES = {file.stem for file in (ANSIBLE / "playbooks").glob("*.yml")}


def run(folder, program, *words):
    """One of Ansible's programs, which knows this environment's collections and those in FOLDER."""
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(folder)}
    env |= {"ANSIBLE_HOME": str(folder / "home"), "ANSIBLE_COLLECTIONS_PATH": str(folder)}
    command = [sys.executable, "-m", "ansible", program, *words]
    ran = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The collection's folder, of a package that was built of ``ansible/``."""
    folder = tmp_path_factory.mktemp("collection")
    run(folder, "galaxy", "collection", "build", ANSIBLE, "--output-path", folder)
    (package,) = folder.glob("tandem-fleet-*.tar.gz")
    run(folder, "galaxy", "collection", "install", package, "--no-deps", "--offline", "-p", folder)
    return folder / "ansible_collections/tandem/fleet"


def test_it_has_every_role_and_playbook_and_no_program(installed):
    for part in ("roles", "playbooks"):
        of_package, of_source = ({one.name for one in (root / part).iterdir()} for root in (installed, ANSIBLE))
        assert of_package == of_source
    assert {one.name for one in installed.iterdir() if one.is_dir()} == {"roles", "playbooks", "meta"}


def test_each_playbook_finds_its_roles_by_the_collections_name(installed):
    folder = installed.parents[2]
    (folder / "hosts.yml").write_text("{servers: {hosts: {a: }}, probes: {hosts: {b: }}}")
    names = [f"tandem.fleet.{name}" for name in sorted(NAMES)]
    run(folder, "playbook", "-i", folder / "hosts.yml", "--syntax-check", *names)


def test_it_names_the_collections_that_its_tasks_use(installed):
    texts = [file.read_text() for part in ("roles", "playbooks") for file in (installed / part).rglob("*.yml")]
    used = {name for text in texts for name in re.findall(r"^ +((?:amazon|ansible|community)\.\w+)\.\w+:$", text, re.M)}
    named = set(yaml.safe_load((ANSIBLE / "galaxy.yml").read_text())["dependencies"])
    required = yaml.safe_load((ANSIBLE / "requirements.yml").read_text())["collections"]
    assert used - {"ansible.builtin"} == named == {one["name"] for one in required}


# --- a root that is read-only


ROLE, PLAYBOOKS = ANSIBLE / "roles/base", ANSIBLE / "playbooks"
DEFAULTS = yaml.safe_load((ROLE / "defaults/main.yml").read_text())


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
def test_systemd_understands_when_upgrades_come() -> None:
    when = DEFAULTS["base_read_only_upgrades_at"]
    said = subprocess.run(["systemd-analyze", "calendar", when], capture_output=True, text=True, check=True)
    assert "Normalized form: Sun *-*-* 03:00:00" in said.stdout


def entries(tasks: list[dict[str, object]]) -> list[tuple[str, tuple[str, ...]]]:
    """Of base's tasks: which, and under which tags."""
    key = "ansible.builtin.import_role"
    asked = [(task[key], task.get("tags", [])) for task in tasks if key in task]
    return [(str(role.get("tasks_from")), tuple(tags)) for role, tags in asked if role["name"] == "base"]


def test_a_play_over_probes_begins_writable_and_ends_read_only() -> None:
    (play,) = (play for play in yaml.safe_load((PLAYBOOKS / "probe.yml").read_text()) if play.get("become"))
    assert entries(play["pre_tasks"]) == [("writable", ("always",))]
    assert entries(play["tasks"][:1]) == [("back", ("always",))]


# --- the roll-out


PROGRAM = Path(sys.executable).with_name("ansible-playbook")


def roll_outs():
    """The settings of each play over probes, but for those that connect to none."""
    for play in yaml.safe_load((PLAYBOOKS / "probe.yml").read_text()):
        if play.get("hosts") == "probes" and not any(role["role"] == "validate_inventory" for role in play["roles"]):
            yield {key: play[key] for key in ("serial", "max_fail_percentage")}


@pytest.mark.skipif(not PROGRAM.exists(), reason="pip install -r requirements/lock.txt")
@pytest.mark.parametrize(("bad", "batches"), [("kit-20", [1, 4, 20]), ("none", [1, 4, 20, 15])])
def test_a_rollout_to_forty_probes(tmp_path, bad, batches):
    settings, *others = roll_outs()
    assert all(one == settings for one in others)
    hosts = {f"kit-{number:02}": {} for number in range(1, 41)}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"probes": {"hosts": hosts}}))
    tasks = [
        {"name": "Change it", "ansible.builtin.debug": {"msg": "changed"}},
        {"name": "Find it sick", "ansible.builtin.fail": {}, "when": f"inventory_hostname == '{bad}'"},
    ]
    play = {"name": "Any", "hosts": "probes", "gather_facts": False, **settings, "tasks": tasks}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    env = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_HOME": str(tmp_path)}
    command = [PROGRAM, "-i", tmp_path / "hosts.yml", tmp_path / "play.yml"]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    changed = [re.findall(r"^ok: \[(kit-\d+)\]", part, re.M) for part in ran.stdout.split("TASK [Change it]")[1:]]
    assert [len(batch) for batch in changed] == batches, ran.stdout
    assert (ran.returncode == 0) == (bad == "none")
