"""The roll-out of probe.yml and pull.yml: one probe first, then a tenth, then half at a time, and no further than the first that fails."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

PLAYBOOKS = Path(__file__).resolve().parents[3] / "ansible/playbooks"
PROGRAM = Path(sys.executable).with_name("ansible-playbook")
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="pip install -r requirements/provision.txt")


def roll_out(playbook):
    """Its settings, of its plays over probes; all alike, but for those that connect to none."""
    plays = [play for play in yaml.safe_load((PLAYBOOKS / playbook).read_text()) if play.get("hosts") == "probes"]
    plays = [play for play in plays if [role["role"] for role in play["roles"]] != ["inputs"]]
    told = [{key: play[key] for key in ("serial", "max_fail_percentage")} for play in plays]
    assert all(one == told[0] for one in told)
    return told[0]


@pytest.mark.parametrize("playbook", ["probe.yml", "pull.yml"])
@pytest.mark.parametrize(
    ("bad", "touched"),
    [("kit-01", 1), ("kit-03", 1 + 4), ("kit-20", 1 + 4 + 20), ("none", 40)],
    ids=["the first", "of the tenth", "of the half", "none"],
)
def test_forty_probes(tmp_path, playbook, bad, touched):
    hosts = {f"kit-{number:02}": {} for number in range(1, 41)}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"probes": {"hosts": hosts}}))
    tasks = [
        {"name": "Change it", "ansible.builtin.debug": {"msg": "changed"}},
        {"name": "Find it sick", "ansible.builtin.fail": {}, "when": f"inventory_hostname == '{bad}'"},
    ]
    play = {"name": "Any", "hosts": "probes", "gather_facts": False, **roll_out(playbook), "tasks": tasks}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    ran = subprocess.run(
        [PROGRAM, "-i", tmp_path / "hosts.yml", tmp_path / "play.yml"],
        env={**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    recap = dict(re.findall(r"^(kit-\d+)\s*: ok=(\d+)", ran.stdout, re.M))
    assert sum(int(ok) > 0 for ok in recap.values()) == touched
    assert (ran.returncode == 0) == (bad == "none")
