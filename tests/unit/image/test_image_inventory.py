"""The inventory as Ansible itself reads it: groups, vaults, templates; and what a person is told when it cannot."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_image import inventory
from tandem_image.cli import main
from tandem_image.errors import ImageError

HOSTS = {"all": {"children": {"probes": {"children": {"pi4": {"hosts": {"probe-7": None, "probe-8": None}}}}}}}
SECRET = "sehr geheim"  # noqa: S105 - of this test's own network


@pytest.fixture(scope="module")
def vault() -> str:
    """ansible-vault, beside which ansible is."""
    beside = Path(sys.executable).with_name("ansible-vault")
    found = str(beside) if beside.exists() else shutil.which("ansible-vault")
    if found is None:
        pytest.skip("Ansible is missing here: requirements/provision.txt")
    return found


@pytest.fixture
def fleet(tmp_path, vault, operator_key) -> Path:
    """An inventory with a vault, opened by ``password``."""
    folder = tmp_path / "fleet"
    files = {
        "hosts.yml": HOSTS,
        "group_vars/all/main.yml": {
            "tandem_server_name": "server.example",
            "tandem_operator_keys": [operator_key],
            "tandem_wifi": {"country": "DE", "ssid": "home", "password": "{{ vault_wifi_password }}"},
        },
        "group_vars/pi4.yml": {"tandem_image_file": str(tmp_path / "stock.img")},
        "host_vars/probe-7/main.yml": {
            "tandem_paths": [
                {
                    "name": "a",
                    "usb": "1-1.2",
                    "apn": "{{ 'inter' ~ 'net' }}",
                    "pin": "1234",
                    "user": "{{ nobody | default(omit) }}",
                }
            ]
        },
        "host_vars/probe-7/vault.yml": {"vault_wifi_password": SECRET},
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    (tmp_path / "password").write_text("opens it\n")
    encrypt = [
        vault,
        "encrypt",
        "--vault-password-file",
        str(tmp_path / "password"),
        str(folder / "host_vars/probe-7/vault.yml"),
    ]
    subprocess.run(encrypt, check=True, capture_output=True)
    return folder


def test_groups_vaults_and_templates_are_ansibles(fleet):
    options = ["--vault-password-file", str(fleet.parent / "password")]
    told = inventory.read("probe-7", [str(fleet)], options)
    assert told.mapping("tandem_wifi") == {"country": "DE", "ssid": "home", "password": SECRET}
    assert told.sequence("tandem_paths") == [{"name": "a", "usb": "1-1.2", "apn": "internet", "pin": "1234"}]
    assert told.text("tandem_image_file") == str(fleet.parent / "stock.img")
    assert told.text("tandem_user") is None


def test_what_ansible_cannot_say_is_told_in_a_line_without_values(fleet, tmp_path):
    (tmp_path / "wrong").write_text("opens nothing\n")
    good, wrong = (["--vault-password-file", str(tmp_path / name)] for name in ("password", "wrong"))
    for probe, options, said in (
        ("probe-7", [], "--ask-vault-pass"),
        ("probe-7", wrong, "another --vault-password-file"),
        ("probe-8", good, "vault_wifi_password is not defined"),
        ("probe-9", good, "is probe-9 in that inventory"),
    ):
        with pytest.raises(ImageError, match=said) as caught:
            inventory.read(probe, [str(fleet)], options)
        assert SECRET not in str(caught.value)
        assert "\n" not in str(caught.value)


def test_an_image_is_made_from_the_inventory_alone(fleet, stocks, monkeypatch, capsys):
    folder = fleet.parent
    shutil.copyfile(stocks["trixie", "arm64"].path, folder / "stock.img")
    (folder / "invite").write_text(json.dumps({"probe": "probe-7", "code": "invite_" + "c" * 43}))
    monkeypatch.chdir(folder)
    words = ["probe-7", "--inventory", str(fleet), "--vault-password-file", "password", "--invite", "invite", "--json"]
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["probe"], told["release"], told["path"], told["enrols"]) == ("probe-7", "trixie", "probe-7.img", True)
    content = (folder / "probe-7.img").read_bytes()
    assert b"https://server.example:8443" in content
    assert b"apn=internet" in content
    assert not any(secret in content for secret in (SECRET.encode(), b"1234\n", b'"1234"'))


@given(st.text(), st.text())
def test_whatever_a_program_prints_instead_is_refused(stdout, stderr):
    with pytest.raises(ImageError):
        inventory._values("probe-7", stdout, stderr)


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_any_json_instead_is_read_or_refused(document):
    play = {"plays": [{"tasks": [{"hosts": {"probe-7": {"msg": document}}}]}]}
    for text in (json.dumps(play), json.dumps(document)):
        try:
            assert isinstance(inventory._values("probe-7", text, ""), dict)
        except ImageError:
            continue
