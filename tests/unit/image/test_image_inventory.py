"""The inventory as Ansible itself reads it, the server's invitation, and only a removable disk that nobody uses becomes a card."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import stock_images
from tandem_image import ImageError, card, inventory
from tandem_image.cli import main
from tandem_image.settings import invitation, settings

SECRET = "sehr geheim"  # noqa: S105 - of this test's own network


@pytest.fixture
def locked(fleet):
    """The fleet with a secret, and its key beside it."""
    program = Path(sys.executable).with_name("ansible-vault")
    if not program.exists():
        pytest.skip("Ansible is missing here: requirements/lock.txt")
    wifi = {"country": "DE", "ssid": "home", "password": "{{ secret_wifi }}"}
    paths = [{"name": "a", "apn": "{{ 'inter' ~ 'net' }}", "user": "{{ nobody | default(omit) }}"}]
    (fleet / "host_vars/kit-01").mkdir()
    (fleet / "host_vars/kit-01.yml").rename(fleet / "host_vars/kit-01/main.yml")
    (fleet / "host_vars/kit-01/main.yml").write_text(json.dumps({"tandem_wifi": wifi, "tandem_paths": paths}))
    (fleet / "host_vars/kit-01/secrets.yml").write_text(json.dumps({"secret_wifi": SECRET}))
    (fleet / "vault.key").write_text("opens it\n")
    command = [program, "encrypt", "--vault-password-file", fleet / "vault.key", fleet / "host_vars/kit-01/secrets.yml"]
    subprocess.run(command, check=True, capture_output=True)
    return fleet


def test_groups_vaults_and_templates_are_ansibles(locked):
    told = inventory.variables(locked, "kit-01")
    assert told["tandem_wifi"] == {"country": "DE", "ssid": "home", "password": SECRET}
    assert told["tandem_paths"] == [{"name": "a", "apn": "internet"}]
    assert told["tandem_ca_file"] == str(locked / "ca.pem")
    assert "tandem_user" not in told


def test_what_ansible_cannot_say_is_told_in_a_line_without_values(locked, tmp_path):
    cases = [("kit-09", "there is no kit-09; hint: ./kit fleet add-kit kit-09")]
    (locked / "vault.key").rename(tmp_path / "aside")
    for said in ("the vault has no key; hint: ", "the vault does not open; hint: "):
        with pytest.raises(ImageError, match=said) as caught:
            inventory.variables(locked, "kit-01")
        assert SECRET not in str(caught.value)
        (locked / "vault.key").write_text("opens nothing\n")
    (tmp_path / "aside").rename(locked / "vault.key")
    (locked / "host_vars/kit-01/secrets.yml").write_text("{}")
    cases.append(("kit-01", "secret_wifi is not defined; hint: set it for kit-01"))
    for probe, said in cases:
        with pytest.raises(ImageError, match=said) as caught:
            inventory.variables(locked, probe)
        assert "\n" not in str(caught.value)
    with pytest.raises(ImageError, match=r"there is no inventory .*; hint: \./kit fleet new"):
        inventory.variables(tmp_path / "nowhere", "kit-01")


@pytest.fixture
def server(fleet, stocks, tmp_path, monkeypatch):
    """Makes an image without --invite. The server is this machine, and its tandem-server is what the test says."""
    if os.geteuid() != 0 or shutil.which("su") is None:
        pytest.skip("needs root and su, by which Ansible becomes another account here")
    at = {"ansible_connection": "local", "ansible_become_method": "su", "ansible_become_user": "root"}
    at["ansible_python_interpreter"] = "/usr/bin/python3"
    hosts = {"all": {"children": {"probes": {"hosts": {"kit-01": None}}, "servers": {"hosts": {"server": at}}}}}
    (fleet / "hosts.yml").write_text(json.dumps(hosts))
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)

    def image(script):
        program = tmp_path / "bin/tandem-server"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return main(["kit-01", "-i", "fleet", "--image", str(stocks["trixie"].path)])

    return image


def test_without_invite_the_fleets_server_is_asked(server, tmp_path):
    code = "invite_" + "d" * 43
    said = json.dumps({"probe": "kit-01", "code": code})
    assert server(f"[ \"$*\" = 'probe invite kit-01 --json' ] && echo '{said}'") == 0
    files = stock_images.boot_files(tmp_path / "kit-01.img")
    brought = {entry.name: text for entry, text in stock_images.carried(files["firstrun.sh"])}
    assert json.loads(brought["etc/tandem/enrol.json"])["code"] == code


def test_a_server_that_gives_none_is_told_in_a_line(server, capsys):
    assert server("echo 'tandem-server: kit-01 was revoked' >&2; exit 1") != 0
    told = capsys.readouterr().err
    assert "server gives no invitation (tandem-server: kit-01 was" in told
    assert (told.count("\n"), "; hint: " in told) == (1, True)


def test_what_a_server_gives_and_is_none_is_told_in_a_line():
    for given, said in (
        ('{"probe": "kit-02", "code": null}', "the invitation is for 'kit-02', not 'kit-01'; hint: "),
        ('{"probe": "kit-01", "code": null}', "the invitation has no code; hint: "),
        ("welcome", "the invitation is no JSON object; hint: "),
    ):
        with pytest.raises(ImageError, match=rf"^.*{said}.*$"):
            invitation("kit-01", given)


def test_a_server_that_does_not_answer_is_told_in_a_line(fleet, stocks, capsys, monkeypatch):
    monkeypatch.chdir(fleet.parent)
    words = ["kit-01", "-i", "fleet", "--image", str(stocks["trixie"].path)]
    assert main(words) == 2
    assert "the group servers has 0 machines, not one; hint: --invite FILE" in capsys.readouterr().err
    at = {"ansible_host": "127.0.0.1", "ansible_port": 9, "ansible_ssh_common_args": "-o ConnectTimeout=5"}
    hosts = {"all": {"children": {"probes": {"hosts": {"kit-01": None}}, "servers": {"hosts": {"server": at}}}}}
    (fleet / "hosts.yml").write_text(json.dumps(hosts))
    monkeypatch.setenv("ANSIBLE_SSH_RETRIES", "0")
    assert main(words) == 1
    told = capsys.readouterr().err
    assert "server cannot be reached (" in told
    assert (told.count("\n"), "; hint: --invite FILE" in told) == (1, True)


def test_a_wrong_variable_is_named_in_a_line(operator_key):
    good = {"tandem_operator_keys": [operator_key], "tandem_server_name": "server.example"}
    short = {"country": "DE", "ssid": "home", "password": "short"}
    for variable, value, said in (
        ("tandem_operator_keys", [], "tandem_operator_keys is empty: nobody could log in; hint: "),
        ("tandem_operator_keys", ["ssh-ed25519 AAAAC3Nza"], "is cut or changed; hint: "),
        ("tandem_operator_keys", ["-----BEGIN OPENSSH PRIVATE KEY-----"], "not a public SSH key; hint: "),
        ("tandem_wifi", {"ssid": "home"}, "tandem_wifi.country is missing"),
        ("tandem_wifi", {"country": False}, "tandem_wifi.country cannot be used; hint: two capitals"),
        ("tandem_wifi", short, "tandem_wifi.password cannot be used; hint: 8 to 63"),
        ("tandem_wifi", {"country": "DE", "ssid": "a\nb"}, "tandem_wifi.ssid cannot be used; hint: text of one line"),
        ("tandem_server_name", "", "tandem_server_name is missing; hint: "),
        ("tandem_server_name", "https://x", "tandem_server_name cannot be used; hint: "),
        ("tandem_ca_file", "/nowhere/ca.pem", "tandem_ca_file: /nowhere/ca.pem: No such file or directory; hint: "),
        ("tandem_paths", [{"apn": 5}], "tandem_paths[0].apn cannot be used; hint: text of one line, in quotes"),
        ("tandem_paths", {"a": 1}, "tandem_paths is no list; hint: "),
        ("tandem_user", "root", "tandem_user cannot be used; hint: "),
    ):
        with pytest.raises(ImageError) as caught:
            settings("kit-01", {**good, variable: value})
        told = str(caught.value)
        assert (said in told, told.count("\n"), "; hint: " in told) == (True, 0, True), told


def test_a_cas_private_key_does_not_get_onto_a_probe(fleet, monkeypatch, capsys):
    (fleet / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n")
    monkeypatch.chdir(fleet.parent)
    assert main(["kit-01", "-i", "fleet", "--image", "x.img", "--invite", "kit-01.invite"]) == 2
    assert "is not a certificate alone" in capsys.readouterr().err


GB = 1_000_000_000


def disk(**changes):
    usual = {"name": "sdx", "path": "/dev/sdx", "type": "disk", "rm": True, "ro": False, "size": 32 * GB}
    return {**usual, "vendor": "Generic ", "model": "MassStorageClass", "mountpoints": [None], **changes}


def part(*places):
    return {"name": "sdx1", "mountpoints": list(places)}


def test_a_card_in_a_reader_is_taken_and_every_other_is_refused():
    card.refuse(disk(children=[part(None)]))
    for told, said in (
        (disk(rm=False, children=[part("/")]), "is a disk of this machine, not a card, with /; hint: "),
        (disk(rm=False), "is a disk of this machine, not a card; hint: "),
        (disk(children=[part("/media/me/bootfs")]), r"is mounted: /media/me/bootfs; hint: umount /dev/sdx\?\*"),
        (disk(children=[part(None) | {"children": [part("[SWAP]")]}]), r"is mounted: \[SWAP\]; hint: "),
        (disk(type="part"), "/dev/sdx is a partition; hint: give the whole disk"),
        (disk(ro=True), "is read-only; hint: slide the card's lock"),
        (disk(size=0), "the reader is empty; hint: put a card into it"),
        (disk(size=8 * GB), "is too small; hint: 16 GB"),
    ):
        with pytest.raises(ImageError, match=said) as caught:
            card.refuse(told)
        assert (caught.value.status, str(caught.value).count("\n")) == (1, 0)


def test_this_machines_own_disk_is_refused_before_anything_is_done(fleet, monkeypatch, capsys):
    """By whatever lsblk says of it here."""
    own = next((one for one in card.disks() if one["type"] == "disk" and "/" in card.uses(one)), None)
    if own is None:
        pytest.skip("lsblk shows no disk with this machine's root")
    monkeypatch.chdir(fleet.parent)
    assert main(["kit-01", "-i", "fleet", "--image", "none.img", "--invite", "none", "--card", own["path"]]) == 1
    told = capsys.readouterr().err
    assert "is a disk of this machine, not a card, with " in told
    assert told.count("\n") == 1


def test_what_is_not_there_is_told(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    for device in (tmp_path / "plain", tmp_path / "none"):
        with pytest.raises(ImageError, match=r"there is no such disk; hint: \./kit image --cards"):
            card.check(device)


def test_the_columns_are_lsblks_own():
    if shutil.which("lsblk") is None:
        pytest.skip("no lsblk here")
    listed = subprocess.run(["lsblk", "--json", "--bytes", "--output", card._COLUMNS], capture_output=True, check=False)
    assert listed.returncode == 0, listed.stderr
    for one in json.loads(listed.stdout)["blockdevices"]:
        assert card.named(one).startswith(one["path"])


def test_a_card_that_gives_back_something_else_is_told(tmp_path):
    image, device = tmp_path / "image", tmp_path / "card"
    image.write_bytes(bytes(3 << 20))
    device.write_bytes(bytes(4 << 20))
    with device.open("r+b") as opened:
        card.compare(image, opened.fileno(), device)
        opened.seek(2_000_000)
        opened.write(b"x")
        opened.flush()
        with pytest.raises(ImageError, match="gives back something else than was written; hint: throw this card away"):
            card.compare(image, opened.fileno(), device)


def test_rpi_imager_writes_the_card_where_it_is_installed(tmp_path, monkeypatch):
    """Its command line alone: the program is not packaged everywhere."""
    for name, text in {"sudo": 'shift\nexec "$@"', "rpi-imager": f'echo "$*" >{tmp_path}/asked\nexit $STATUS'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("STATUS", "0")
    card.write_as_root(tmp_path / "image", tmp_path / "card")
    assert (tmp_path / "asked").read_text() == f"--cli {tmp_path}/image {tmp_path}/card\n"
    monkeypatch.setenv("STATUS", "1")
    with pytest.raises(ImageError, match="rpi-imager failed; hint: "):
        card.write_as_root(tmp_path / "image", tmp_path / "card")
