"""Every family's ``ports.toml``: readable, without contradictions, and its udev rules can be made."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import tandem.modem
from tandem.modem.ports import KnownDevice, known_devices, read
from tandem.modem.registry import drivers
from tandem.modem.udev import rules

MODEM = Path(tandem.modem.__file__).parent


def test_a_familys_file_is_read() -> None:
    for family in drivers():
        assert {device.family for device in read(MODEM / family / "ports.toml")} <= {family}


def test_a_device_has_no_interface_twice_and_one_port_for_the_collector() -> None:
    for device in known_devices():
        shapes = [(r.number, r.usb_class, r.subclass, r.protocol) for r in device.interfaces]
        assert len(set(shapes)) == len(shapes), device
        assert len([r for r in device.interfaces if r.role == "at-second"]) <= 1, device


def test_families_that_claim_the_same_ids_do_not_contradict_one_another() -> None:
    def ids(device: KnownDevice) -> tuple[str, str]:
        return device.vendor, device.product

    for _, same in groupby(sorted(known_devices(), key=ids), ids):
        roles: dict[int, str] = {}
        for rule in (rule for one in same for rule in one.interfaces if rule.number is not None):
            assert rule.number is None or roles.setdefault(rule.number, rule.role) == rule.role


def test_the_rules_of_all_families_can_be_made() -> None:
    text = rules(known_devices())
    assert all(f'"{device.product}"' in text for device in known_devices())
