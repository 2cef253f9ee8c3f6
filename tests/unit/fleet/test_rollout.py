"""The roll-out of probe.yml: one probe first, then a tenth, then half at a time, and no further than the first that fails."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

PLAYBOOKS = Path(__file__).resolve().parents[3] / "ansible/playbooks"
PROGRAM = Path(sys.executable).with_name("ansible-playbook")
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="pip install -r requirements/lock.txt")


def roll_outs():
    """The settings of each play over probes, but for those that connect to none."""
    for play in yaml.safe_load((PLAYBOOKS / "probe.yml").read_text()):
        if play.get("hosts") == "probes" and not any(role["role"] == "validate_inventory" for role in play["roles"]):
            yield {key: play[key] for key in ("serial", "max_fail_percentage")}


@pytest.mark.parametrize(("bad", "batches"), [("kit-20", [1, 4, 20]), ("none", [1, 4, 20, 15])])
def test_forty_probes(tmp_path, bad, batches):
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
    ran = subprocess.run(
        [PROGRAM, "-i", tmp_path / "hosts.yml", tmp_path / "play.yml"],
        env={**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    changed = [re.findall(r"^ok: \[(kit-\d+)\]", part, re.M) for part in ran.stdout.split("TASK [Change it]")[1:]]
    assert [len(batch) for batch in changed] == batches, ran.stdout
    assert (ran.returncode == 0) == (bad == "none")
