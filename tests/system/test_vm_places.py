"""What the role `modems` writes, read by the real udevd and systemd-networkd: modems on USB are told by their place, also when they come
back with other names. The role's own templates are rendered by Ansible."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from vm import machine
from vm.leds import QEMU

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(2500), machine.NEEDED]
ROLE = machine.REPOSITORY / "ansible/roles/modems"
TANDEM = machine.REPOSITORY / "ansible/roles/tandem"
LAMP = machine.REPOSITORY / "ansible/roles/status_led"
SCENE = str(machine.REPOSITORY / "tests/system/vm/scene_places.py")
PATHS = [
    {"name": "wifi", "interface": "wlan0"},
    {"name": "a", "usb": "1-1", "apn": "internet"},
    {"name": "b", "usb": "2-1", "apn": "internet", "ip_type": "ipv4"},
]
PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  vars_files: ["{tandem}/defaults/main.yml", "{role}/defaults/main.yml", "{role}/vars/main.yml"]
  tasks:
    - ansible.builtin.template: {{src: "{role}/templates/paths.rules.j2", dest: "{made}/paths.rules", mode: "0644"}}
    - ansible.builtin.template: {{src: "{role}/templates/path.network.j2", dest: "{made}/{{{{ item.name }}}}.network", mode: "0644"}}
      loop: "{{{{ modems_paths }}}}"
- hosts: localhost
  connection: local
  gather_facts: false
  vars_files: ["{lamp}/defaults/main.yml", "{lamp}/vars/main.yml"]
  tasks:
    - ansible.builtin.template: {{src: "{lamp}/templates/indicator.rules.j2", dest: "{made}/indicator.rules", mode: "0644"}}
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    made = tmp_path_factory.mktemp("rendered")
    play = tmp_path_factory.mktemp("play") / "play.yml"
    play.write_text(PLAY.format(tandem=TANDEM, role=ROLE, lamp=LAMP, made=made))
    program = Path(sys.prefix) / "bin/ansible-playbook"
    if not program.exists():
        pytest.skip("no ansible-playbook in this environment")
    told = json.dumps(
        {"tandem_paths": PATHS, "ansible_managed": "Ansible managed", "tandem_e_paper": {}}
        | {"tandem_status_led": {"red": 17, "green": 27, "blue": 22}}
    )
    argv = [str(program), "-i", "localhost,", str(play), "-e", told]
    argv += ["-e", f"ansible_python_interpreter={sys.executable}"]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, cwd=play.parent)
    files = {file.name: file.read_bytes() for file in made.iterdir()} | {
        "networkd.conf": (ROLE / "templates/networkd.conf.j2").read_bytes()
    }
    return machine.played(["python3", SCENE], files, qemu=QEMU, timeout_s=2400)


def rightly(told: dict[str, dict[str, Any]]) -> None:
    for path, network, metric in (("a", "192.168.8", 701), ("b", "192.168.9", 702)):
        assert told[path]["address"] == [f"{network}.100"]
        assert told[path]["routes"] == [[f"{network}.1", metric]]
        assert (told[path]["path"], told[path]["unmanaged"]) == (path, "1")


def test_each_path_has_its_own_address_and_metric(seen: dict[str, Any]) -> None:
    rightly(seen["first"])


def test_the_collector_may_reset_the_device_and_its_hub_and_it_does_not_sleep(seen: dict[str, Any]) -> None:
    for told in (*seen["rights"].values(), *seen["rights_again"].values()):
        assert told == {
            "group": "tandem",
            "hub_group": "tandem",
            "authorized": ["tandem", True],
            "power": "on",
            "port": True,
        }


def test_it_is_so_when_they_come_back_with_each_others_names(seen: dict[str, Any]) -> None:
    rightly(seen["second"])
    assert seen["first"]["a"]["interface"] == seen["second"]["b"]["interface"]


def test_rules_of_the_collector_stay(seen: dict[str, Any]) -> None:
    assert seen["rule"] is True


def test_the_status_led_is_the_collectors_and_says_what_is_so(seen: dict[str, Any]) -> None:
    leds = seen["leds"]
    assert leds["at power-on"] == ["red"]
    assert leds["played"] == ["[]", "['green', 'red']", "[]", "['blue', 'green', 'red']", "0"]
    assert leds["running"] == {"lit": ["red"], "trigger": ["none"], "delays": []}
    assert leds["stopping"] == {"lit": None, "trigger": ["timer"], "delays": ["1400", "400"]}
