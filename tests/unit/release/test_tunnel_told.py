"""What the tunnel's fail-over makes of enrolment's file and of the kernel's routes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.program_module import module_of

PROGRAM = Path(__file__).parents[3] / "ansible/roles/wireguard_client/files/tandem-tunnel"
TOLD = {
    "address": "10.87.0.16/16",
    "server_public_key": "A" * 43 + "=",
    "endpoint": "hub.example:51820",
    "allowed_ips": ["10.87.0.0/16"],
    "keepalive_s": 25,
}


def tunnel(folder, action):
    done = subprocess.run(
        [sys.executable, PROGRAM, "--etc", folder, action], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_wg_quick_is_told_what_enrolment_wrote_and_no_key(tmp_path):
    (tmp_path / "enrolled.json").write_text(json.dumps({"wireguard": TOLD}))
    status, conf, _ = tunnel(tmp_path, "conf")
    lines = conf.splitlines()
    assert status == 0
    assert {"Address = 10.87.0.16/16", "AllowedIPs = 10.87.0.0/16", "PersistentKeepalive = 25"} <= set(lines)
    assert [line for line in lines if "Endpoint" in line or line.startswith("PrivateKey")] == []


@pytest.mark.parametrize("text", [None, "{", '{"wireguard": null}', '{"wireguard": {}}', "[]"])
@pytest.mark.parametrize("action", ["conf", "keep"])
def test_a_file_that_cannot_be_used_is_one_line(tmp_path, text, action):
    if text is not None:
        (tmp_path / "enrolled.json").write_text(text)
    status, _, said = tunnel(tmp_path, action)
    assert (status, len(said.splitlines())) == (1, 1)
    assert f"{tmp_path / 'enrolled.json'}: " in said
    assert "; hint: " in said


def test_the_hub_is_tried_as_the_system_routes_it_then_over_each_route():
    shown = json.dumps(
        [
            {"dst": "default", "gateway": "10.1.0.1", "dev": "wwan0", "metric": 700},
            {"dst": "default", "dev": "wg-tandem"},
            {"dst": "default", "dev": "ppp0", "metric": 702},
        ]
    )
    program = module_of(PROGRAM)
    first, second, six = "192.0.2.1:51820", "192.0.2.2:51820", "[2001:db8::1]:51820"
    assert program.ways([first, second, six], shown) == [
        *((first, ""), (second, ""), (six, "")),
        *((first, "via 10.1.0.1 dev wwan0"), (second, "via 10.1.0.1 dev wwan0")),
        *((first, "dev ppp0"), (second, "dev ppp0")),
    ]
    assert program.ways([first], "") == [(first, "")]
