"""One round over a machine's files: what a Pi tells, what another machine tells, and that one source's failure stops no other."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from support.pi_tree import plant
from tandem.app.health import machine as parsers
from tandem.app.health.machine import MachineState, Roots, Supply, throttled
from tandem.app.health.reports import FORMAT, count_boot, parse
from tandem.schema.record import Record


def pi(name: str, root: Path) -> tuple[MachineState, Roots]:
    roots = plant(name, root)
    return MachineState(roots, root, 3), roots


def test_a_pi_4_tells_its_temperature_memory_supply_and_card(tmp_path):
    machine, _ = pi("pi4", tmp_path)
    told = machine.fields()
    Record.make("health", {}, told, 1)
    assert told["processor_temperature_degc"] == 47.712
    assert told["memory_available_bytes"] == 3412880 * 1024
    assert (told["load_1min"], told["uptime_s"], told["boot_count"]) == (0.21, 86521.33, 3)
    assert told["disk_free_bytes"] == machine.room.free_bytes > 0
    assert told["undervoltage"] is False
    assert told["undervoltage_since_boot"] is True
    assert told["throttled_since_boot"] is True
    assert told["frequency_capped_since_boot"] is False
    assert machine.temperatures() == {"cpu-thermal": 47.712}  # hwmon's cpu_thermal is the same
    cards = machine.cards()
    Record.make("card", {"device": "mmcblk0"}, cards["mmcblk0"], 1)
    assert {name: value for name, value in cards["mmcblk0"].items() if value is not None} == {
        "kind": "sd",
        "name": "SN32G",
        "made": "07/2023",
        "size_bytes": 62333952 * 512,
        "erase_bytes": 4194304,
        "read_bytes": 1522022 * 512,
        "written_bytes": 2201832 * 512,
    }
    software = machine.software()
    Record.make("software", {}, software, 1)
    assert software["machine"] == "Raspberry Pi 4 Model B Rev 1.4"
    assert software["bootloader"] == "6efe41bd9d1e"
    assert software["system"] == "Debian GNU/Linux 12 (bookworm)"
    assert software["firmware"] is None


def test_a_compute_module_5_tells_wear_and_a_low_supply(tmp_path):
    machine, _ = pi("cm5", tmp_path)
    told = machine.fields()
    assert (told["undervoltage"], told["throttled"], told["frequency_capped"]) == (True, True, False)
    assert machine.temperatures() == {"cpu-thermal": 61.25, "nvme Composite": 38.85, "rp1_adc": 52.31}
    cards = machine.cards()
    assert list(cards) == ["nvme0n1", "mmcblk0"]  # the state's own first; not the boot partition's device
    assert (cards["nvme0n1"]["kind"], cards["nvme0n1"]["name"]) == ("nvme", "SAMSUNG MZVLB256HBHQ-000L7")
    wear = cards["mmcblk0"]
    assert (wear["life_time_a_code"], wear["life_used_a_percent"]) == (2, 20)
    assert (wear["life_time_b_code"], wear["life_used_b_percent"], wear["pre_eol_code"]) == (10, 100, 1)


def test_a_machine_that_is_no_pi_has_no_bits_and_no_wear(tmp_path):
    (tmp_path / "sys").mkdir()
    roots = Roots(sys=tmp_path / "sys", proc=tmp_path / "proc", etc=tmp_path / "etc", vcgencmd=tmp_path / "vcgencmd")
    machine = MachineState(roots, tmp_path, 1)
    told = machine.fields()
    assert [name for name in told if "voltage" in name or "throttled" in name] == []
    assert told["processor_temperature_degc"] is None
    assert machine.cards() == {}
    assert machine.software()["machine"]
    Record.make("health", {}, told, 1)


def test_a_source_that_says_nonsense_stops_no_other_and_is_told_once(tmp_path, caplog):
    machine, roots = pi("pi4", tmp_path)
    assert "disk_free_bytes" not in MachineState(roots, tmp_path / "gone", 1).fields()
    caplog.clear()
    (roots.proc / "meminfo").write_text("nonsense\n")
    (roots.sys / "class/thermal/thermal_zone0/temp").write_text("warm\n")
    (roots.sys / "devices/platform/soc/soc:firmware/get_throttled").write_text("what?\n")
    (roots.sys / "block/mmcblk0/stat").write_text("1 2\n")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            told = machine.fields()
            cards = machine.cards()
    assert not told.keys() & {"memory_available_bytes", "processor_temperature_degc", "throttled"}
    assert told["undervoltage"] is False  # the kernel's own sensor tells it
    assert told["uptime_s"] == 86521.33
    assert told["disk_free_bytes"] is not None
    assert cards == {}
    said = [record.message for record in caplog.records]
    assert len(said) == 4
    assert "health: meminfo cannot be told: meminfo has no MemAvailable" in said


def test_a_dip_of_the_supply_between_two_rounds_is_seen_and_remembered(tmp_path):
    roots = plant("pi4", tmp_path)
    (roots.sys / "devices/platform/soc/soc:firmware/get_throttled").write_text("0\n")
    alarm = roots.sys / "class/hwmon/hwmon1/in0_lcrit_alarm"
    supply = Supply(roots)
    assert supply.fields(supply.bits())["undervoltage_since_boot"] is False
    alarm.write_text("1\n")
    supply.look()
    alarm.write_text("0\n")
    supply.look()
    told = supply.fields(supply.bits())
    assert (told["undervoltage"], told["undervoltage_since_boot"]) == (True, True)
    later = supply.fields(supply.bits())
    assert (later["undervoltage"], later["undervoltage_since_boot"]) == (False, True)


def told_by(roots: Roots) -> dict[str, bool | None]:
    supply = Supply(roots)
    return supply.fields(supply.bits())


def test_of_the_supply_is_told_what_there_is_to_ask(tmp_path):
    roots = plant("pi4", tmp_path)
    assert told_by(replace(roots, vcgencmd=Path("/bin/false")))["undervoltage_since_boot"] is True, "by sysfs"
    asked = tmp_path / "vcgencmd"
    asked.write_text('#!/bin/sh\n[ "$1" = version ] && echo "Oct  3 2023 14:55:39" || echo throttled=0x20000\n')
    asked.chmod(0o755)
    assert told_by(roots)["frequency_capped_since_boot"] is True
    assert MachineState(roots, tmp_path, 1).software()["firmware"] == "2023-10-03"
    asked.unlink()
    (roots.sys / "devices/platform/soc/soc:firmware/get_throttled").unlink()
    assert told_by(roots) == {"undervoltage": False, "undervoltage_since_boot": False}, "the kernel's sensor alone"


def test_boots_are_counted_once_each_whatever_the_disk_does(tmp_path, caplog):
    assert [count_boot(tmp_path, boot) for boot in ("one", "one", "two", "two", "three")] == [1, 1, 2, 2, 3]
    (tmp_path / "boot-count.json").write_bytes(b"\0" * 4096)
    assert [count_boot(tmp_path, boot) for boot in ("four", "five")] == [1, 2]
    assert "begins anew" in caplog.text
    for text in ("[]", '{"format": "another"}', f'{{"format": "{FORMAT}", "count": 0, "boot": "x"}}'):
        with pytest.raises(ValueError, match=r"no tandem|not as it was"):
            parse(text)
    assert count_boot(tmp_path / "gone", "one") == 1
    assert "counted again" in caplog.text


# --- parsers of what kernel and firmware tell: the documented forms are taken, any other text is refused, none passes for a number


def test_the_firmwares_bits_have_their_documented_meaning_and_what_is_no_answer_is_refused():
    low = {"undervoltage", "throttled"}
    every = {"frequency_capped", "throttled", "soft_temperature_limit"}
    for text, now, since in (
        ("throttled=0x0", set(), set()),
        ("throttled=0x50005", low, low),
        ("50000", set(), low),
        ("e0008", {"soft_temperature_limit"}, every),
    ):
        assert (throttled(text).now, throttled(text).since) == (now, since)
    for text in ("", "0x", "error=1 error_msg=Command not registered", "1FFFFFFFF", "-1", "٣"):
        with pytest.raises(ValueError, match="no answer"):
            throttled(text)


def test_units_of_the_kernel_and_what_it_does_not_know():
    told = {"47712": 47.712, "-5000": -5.0, "-273150": None, "2147483647": None}
    assert {text: parsers.degrees(text) for text in told} == told, "millidegrees, impossible ones absent"
    with pytest.raises(ValueError, match="no temperature"):
        parsers.degrees("47.7 C")
    assert (parsers.codes("0x02 0x0a", 2), parsers.codes(None, 2)) == ((2, 10), None)
    used = {0: None, 1: 10, 10: 100, 11: 110, 12: None, 255: None}
    assert {code: parsers.used_percent(code) for code in used} == used, "tenths, undefined codes tell none"
    for wrong in ("0x02", "0x02 0x0a 0x01", "2 10", "", "0x1ff 0x01"):
        with pytest.raises(ValueError, match="is not 2 codes"):
            parsers.codes(wrong, 2)
    assert parsers.moved_bytes("1 0 10 0 2 0 20 0 0 0 0") == (5120, 10240), "sectors of 512 bytes"
    with pytest.raises(ValueError, match="no block device's stat"):
        parsers.moved_bytes("1 2 3")
    name = "Debian GNU/Linux 12 (bookworm)"
    names = {f'NAME="x"\nPRETTY_NAME="{name}"\n': name, "PRETTY_NAME=Alpine\n": "Alpine", "PRETTY_NAME=\x1b\n": None}
    assert {text: parsers.pretty_name(text) for text in names} == names
