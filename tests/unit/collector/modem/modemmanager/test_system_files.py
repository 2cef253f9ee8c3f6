"""The polkit rule and the bus policy: what they allow, to whom, and that ModemManager knows such actions."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

import tandem

SYSTEM = Path(tandem.__file__).parents[2] / "system"
RULE = SYSTEM / "50-tandem-modemmanager.rules"
ACTIONS = ["org.freedesktop.ModemManager1.Device.Control", "org.freedesktop.ModemManager1.Location"]


def test_the_rule_runs_and_leaves_everything_else_to_others():
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node here to run polkit's language with")
    asked = [[a, u] for a in (*ACTIONS, "org.freedesktop.ModemManager1.Control") for u in ("tandem", "pi", "root")]
    script = (
        "let rules = []; const polkit = {Result: {YES: 'yes', NOT_HANDLED: null}, addRule: f => rules.push(f)};\n"
        f"{RULE.read_text()}\n"
        f"console.log(JSON.stringify({json.dumps(asked)}.map(([id, user]) => rules[0]({{id}}, {{user}}))));"
    )
    told = json.loads(subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout)
    assert [question for question, answer in zip(asked, told, strict=True) if answer == "yes"] == [
        [a, "tandem"] for a in ACTIONS
    ]


def test_modemmanager_has_such_actions():
    program = os.environ.get("TANDEM_MODEMMANAGER") or str(
        SYSTEM.parents[1] / "build/modemmanager/usr/sbin/ModemManager"
    )
    policy = Path(program).parents[2] / "usr/share/polkit-1/actions/org.freedesktop.ModemManager1.policy"
    if not policy.is_file():
        pytest.skip("no ModemManager here: ./kit test takes it from the distribution's package")
    known = re.findall(r'<action id="([^"]+)"', policy.read_text())
    assert set(ACTIONS) <= set(known)


def test_the_bus_policy_allows_one_method_to_one_user():
    policies = ElementTree.parse(SYSTEM / "tandem-modemmanager.conf").getroot().findall("policy")  # noqa: S314 - our own file
    assert [p.attrib for p in policies] == [{"user": "tandem"}]
    assert [(a.tag, a.attrib["send_member"]) for a in policies[0]] == [("allow", "GetCellInfo")]
