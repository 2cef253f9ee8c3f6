"""No secret in clear: what `fleet-secrets check` finds, what it leaves alone, and that `set` writes for one probe's key only."""

import contextlib
import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from program_module import module_of

ANSIBLE = Path(__file__).resolve().parents[3] / "ansible"
PROGRAM = ANSIBLE / "fleet-secrets"
VAULT = Path(sys.executable).with_name("ansible-vault")
module = module_of(PROGRAM)
needs_vault = pytest.mark.skipif(not VAULT.exists(), reason="pip install -r requirements/provision.txt")


def fleet_secrets(tmp_path, *arguments, said=""):
    return subprocess.run(
        [sys.executable, PROGRAM, *map(str, arguments)],
        input=said,
        capture_output=True,
        text=True,
        env={**os.environ, "TANDEM_VAULT": str(tmp_path / "keys"), "ANSIBLE_HOME": str(tmp_path / "home")},
        check=False,
    )


def checked(*places):
    """Status and lines of `fleet-secrets check`."""
    with contextlib.redirect_stderr(io.StringIO()) as told:
        status = module.main(["check", *map(str, places)])
    return status, told.getvalue().splitlines()


def check(tmp_path, **files):
    """Status and lines for an inventory of these files (``__`` in a name is a folder's, ``_DOT_`` a dot)."""
    inventory = tmp_path / "inventory"
    for name, text in files.items():
        file = inventory / name.replace("__", "/").replace("_DOT_", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    status, told = checked(inventory)
    return status, [line.replace(f"{inventory}/", "") for line in told]


@pytest.mark.parametrize(
    ("text", "line", "name"),
    [
        ("tandem_paths:\n  - name: a\n    pin: 1234\n", 3, "pin"),
        ("tandem_wifi: {ssid: x, password: hunter}\n", 1, "password"),
        ("secret_pin_a: '0000'\n", 1, "secret_pin_a"),
        ("a:\n  b:\n    - token: abc\n", 3, "token"),
        ("secret_wifi:\n  workshop: hunter\n", 2, "secret_wifi"),
        ("grafana_admin_password: '{{ x }}hunter'\n", 1, "grafana_admin_password"),
        ('{"sim_puk": 12345678}\n', 1, "sim_puk"),
    ],
)
def test_a_secret_in_clear_is_told_with_its_line(tmp_path, text, line, name):
    status, told = check(tmp_path, host_vars__kit_DOT_yml=text)
    assert status == 1
    assert len(told) == 1
    assert told[0].startswith(f"host_vars/kit.yml:{line}: {name} in clear; mend: ")
    assert "hunter" not in told[0]
    assert "1234" not in told[0]


@pytest.mark.parametrize(
    "text",
    [
        'pin: "{{ secret_pin_a | default(omit) }}"\n',
        "pin: !vault |\n  $ANSIBLE_VAULT;1.2;AES256;kit\n  3132\n",
        "password:\n",
        "pin_file: /etc/tandem/pin\ntoken_file: t\n",
        "tandem_operator_keys:\n  - ssh-ed25519 AAAA me\n",
        "a: &a\n  b: *a\n",
    ],
)
def test_what_is_none_is_left_alone(tmp_path, text):
    assert check(tmp_path, group_vars__all_DOT_yml=text) == (0, [])


def test_in_an_ini_inventory_and_beside_it(tmp_path):
    status, told = check(
        tmp_path,
        hosts="[probes]\nkit-1 ansible_host=192.0.2.1 ansible_become_password=hunter\n# kit-2 pin=1\n",
        key="-----BEGIN OPENSSH " + "PRIVATE KEY-----\nAAAA\n",
        aws_DOT_env="x\nid=AKIA" + "A" * 16 + "\n",
        host_vars__kit_DOT_1__vault_DOT_yml="plain: 1\n",
    )
    assert status == 1
    assert sorted(line.partition(" ")[0] for line in told) == [
        "aws.env:2:", "host_vars/kit.1/vault.yml:1:", "hosts:2:", "key:1:",
    ]  # fmt: skip
    assert not any("hunter" in line for line in told)


def test_another_probes_key_is_told(tmp_path):
    status, told = check(tmp_path, **{"host_vars__kit-1__vault_DOT_yml": "$ANSIBLE_VAULT;1.2;AES256;kit-2\n3132\n"})
    assert status == 1
    assert "not encrypted with the key of kit-1 alone" in told[0]


def test_the_example_has_none_and_a_name_that_is_no_file_is_passed_over(tmp_path):
    assert fleet_secrets(tmp_path, "check", ANSIBLE / "inventories/example", "localhost,").returncode == 0


@given(st.binary(max_size=200), st.sampled_from(["x.yml", "hosts", "x.ini", "x.json"]))
def test_any_file_is_read_without_a_fall(tmp_path_factory, content, name):
    folder = tmp_path_factory.mktemp("any")
    (folder / name).write_bytes(content)
    status, told = checked(folder)
    assert status == bool(told)


@needs_vault
def test_set_writes_for_one_probes_key_and_ansible_reads_it(tmp_path):
    inventory = tmp_path / "inventory"
    inventory.mkdir()
    (inventory / "hosts.yml").write_text("probes: {hosts: {kit-1: {pin: '{{ secret_pin_a }}'}, kit-2: {}}}\n")
    for probe, variable, value in (
        ("kit-1", "secret_pin_a", "4711"),
        ("kit-1", "secret_pin_b", "4712"),
        ("kit-2", "secret_pin_a", "98765432"),
    ):
        put = fleet_secrets(tmp_path, "set", "-i", inventory, probe, variable, said=value + "\n")
        assert put.returncode == 0, put.stderr
        assert value not in put.stdout + put.stderr
    assert fleet_secrets(tmp_path, "check", inventory).returncode == 0
    assert "4711" not in (inventory / "host_vars/kit-1/vault.yml").read_text()
    key = tmp_path / "keys/kit-1.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.read_text() != (tmp_path / "keys/kit-2.key").read_text()

    def asked(probe, variable, *ids):
        vaults = [part for one in ids for part in ("--vault-id", f"{one}@{tmp_path}/keys/{one}.key")]
        return subprocess.run(
            [VAULT.with_name("ansible"), "-i", inventory, probe, "-m", "debug", "-a", f"var={variable}", *vaults],
            capture_output=True, text=True, check=False,
            env={**os.environ, "ANSIBLE_CALLBACK_RESULT_FORMAT": "json", "ANSIBLE_HOME": str(tmp_path / "home")},
        )  # fmt: skip

    assert json.loads(asked("kit-1", "pin", "kit-1").stdout.partition("=> ")[2])["pin"] == "4711"
    assert asked("kit-1", "secret_pin_b", "kit-2", "kit-1").returncode == 0
    strangers = asked("kit-1", "pin", "kit-2")
    assert strangers.returncode != 0
    assert "4711" not in strangers.stdout + strangers.stderr
    assert yaml.safe_load((inventory / "hosts.yml").read_text())


@needs_vault
@pytest.mark.parametrize(
    ("arguments", "said", "told"),
    [
        (("../kit", "secret_a"), "x\n", "no probe's name"),
        (("kit-1", "apn"), "x\n", "no secret's name"),
        (("kit-1", "secret_a"), "\n", "empty"),
    ],
)
def test_what_cannot_be_set(tmp_path, arguments, said, told):
    refused = fleet_secrets(tmp_path, "set", "-i", tmp_path, *arguments, said=said)
    assert refused.returncode == 2
    assert told in refused.stderr
    assert "Traceback" not in refused.stderr


@needs_vault
def test_a_play_stops_before_anything_where_a_secret_stands_in_clear(tmp_path):
    (tmp_path / "hosts.yml").write_text("probes: {hosts: {kit-1: {pin: 1234}}}\n")
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"), "ANSIBLE_HOME": str(tmp_path / "home")}
    command = [VAULT.with_name("ansible-playbook"), "-i", tmp_path / "hosts.yml", "-c", "local"]
    command += ["-e", f"ansible_python_interpreter={sys.executable}", "-e", "tandem_check_secrets=true"]
    command += [ANSIBLE / "playbooks/ping.yml"]
    stopped = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert stopped.returncode != 0
    assert "hosts.yml:1: pin in clear; mend: " in " ".join(stopped.stdout.split())  # folded by the callback
    assert "1234" not in stopped.stdout + stopped.stderr
    assert "Answer" not in stopped.stdout
    (tmp_path / "hosts.yml").write_text("probes: {hosts: {kit-1: {pin: '{{ secret_pin }}'}}}\n")
    assert subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0
