"""The tree in configfs, its order, and that nothing of it stays. A folder plays configfs: rmdir there takes attributes along."""

import fcntl
import os
import re
import shutil
import threading
from pathlib import Path

import pytest

from tandem_bench.gadget import device
from tandem_bench.gadget.description import UBLOX_TOBY_L200, Endpoints, Function, Gadget, GadgetError, fits, gadget_of
from tandem_bench.gadget.device import Controller, Device, choose, clear, controllers

MODEM = gadget_of("tandem-a", UBLOX_TOBY_L200, 1)


def as_configfs_removes(path: Path) -> None:
    """Attributes and the groups that the kernel made go with their folder; what was made by mkdir or linked must be gone before."""
    made = [p for p in path.rglob("*") if p.is_symlink() or p.parent.name in ("functions", "configs", "strings")]
    assert made == [], f"{path} is not empty"
    shutil.rmtree(path)


def test_ports_are_numbered_first_and_it_is_described_not_plugged_in() -> None:
    done = device.build(MODEM)
    links = [action.path.rpartition("/")[2] for action in done if action.verb == "link"]
    assert links == ["acm.a0", "acm.a1", "ecm.e0"]
    assert [action for action in done if action.path.endswith("/UDC")] == []


def test_teardown_leaves_nothing_and_needs_its_order(tmp_path: Path) -> None:
    device.perform(device.build(MODEM), tmp_path)
    device.perform(device.teardown(MODEM), tmp_path, as_configfs_removes)
    assert list(tmp_path.iterdir()) == []
    assert clear(["tandem-a", "tandem-b"], tmp_path) == []
    device.perform(device.build(MODEM), tmp_path)
    with pytest.raises(AssertionError):
        device.perform(device.teardown(MODEM)[::-1], tmp_path, as_configfs_removes)


def test_a_gadget_of_that_name_is_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "tandem-a").mkdir()
    with pytest.raises(GadgetError, match="tandem-bench gadget clear"):
        Device(MODEM, Controller("u", "dummy_udc", None), tmp_path).make()


def test_without_a_gadget_stack_the_line_says_what_to_load(tmp_path: Path) -> None:
    (tmp_path / "root").write_text("no folder")
    with pytest.raises(GadgetError, match="modprobe libcomposite"):
        device.perform(device.build(MODEM), tmp_path / "root")


def test_a_refused_binding_names_controllers(tmp_path: Path) -> None:
    with pytest.raises(GadgetError, match="endpoints enough"):
        device.perform([device.bind(MODEM, "dummy_udc.0")], tmp_path)


def test_controllers_are_read_with_driver_and_gadget(tmp_path: Path) -> None:
    udc, gadgets, drivers = tmp_path / "udc", tmp_path / "gadgets", tmp_path / "drivers"
    for name, driver in (("3f980000.usb", "dwc2"), ("dummy_udc.1", None)):
        (udc / name / "device").mkdir(parents=True)
        if driver:
            (drivers / driver).mkdir(parents=True)
            (udc / name / "device" / "driver").symlink_to(drivers / driver)
    (gadgets / "tandem-a").mkdir(parents=True)
    (gadgets / "tandem-a" / "UDC").write_text("3f980000.usb\n")
    (gadgets / "half-made").mkdir()
    assert controllers(udc, gadgets) == [
        Controller("3f980000.usb", "dwc2", "tandem-a"),
        Controller("dummy_udc.1", "dummy_udc", None),
    ]
    assert controllers(tmp_path / "none", tmp_path / "none") == []


def test_two_processes_never_plug_in_at_once(tmp_path: Path) -> None:
    made = Device(MODEM, Controller("dummy_udc.0", "dummy_udc", None), tmp_path)
    made.make()
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    plugging = threading.Thread(target=made.plug)
    plugging.start()
    while not any("->" in line and f" {os.getpid()} " in line for line in Path("/proc/locks").read_text().splitlines()):
        assert plugging.is_alive(), "it did not wait"
    assert not (tmp_path / "tandem-a" / "UDC").exists()
    os.close(other)
    plugging.join()
    assert (tmp_path / "tandem-a" / "UDC").read_text() == "dummy_udc.0"


# --- what a gadget needs of a controller


def test_a_modem_fits_a_raspberry_pi_with_one_endpoint_to_spare() -> None:
    modem = gadget_of("tandem-a", UBLOX_TOBY_L200, 1)
    assert modem.endpoints == Endpoints(6, 3)
    fits(modem, "dwc2")
    fits(modem, "dummy_udc")


def test_a_third_port_does_not_and_the_line_says_what_to_leave_out() -> None:
    modem = gadget_of("tandem-a", UBLOX_TOBY_L200, 1, ports=3)
    with pytest.raises(
        GadgetError,
        match=r"^gadget tandem-a needs 8 IN and 4 OUT endpoints, the controller dwc2 has 7 IN .*hint: fewer AT",
    ):
        fits(modem, "dwc2")
    fits(modem, "dummy_udc")
    fits(modem, "some_new_controller")  # the kernel will tell


def test_modems_differ_in_serial_number_and_addresses_and_stay_the_same_by_seed() -> None:
    first, second = (gadget_of(f"tandem-{path}", UBLOX_TOBY_L200, 1) for path in "ab")
    texts = [first.serial, first.host_mac, first.device_mac, second.serial, second.host_mac, second.device_mac]
    assert len(set(texts)) == 6
    assert gadget_of("tandem-a", UBLOX_TOBY_L200, 1) == first
    assert gadget_of("tandem-a", UBLOX_TOBY_L200, 2).serial != first.serial
    for mac in (first.host_mac, second.device_mac):
        assert re.fullmatch(r"02(:[0-9a-f]{2}){5}", mac)  # locally administered, one device's


@pytest.mark.parametrize(
    ("name", "functions"),
    [
        ("a/b", (Function("acm", "a0"),)),
        ("", (Function("acm", "a0"),)),
        ("a", ()),
        ("a", (Function("acm", "x"), Function("acm", "x"))),
    ],
)
def test_nonsense_is_refused(name: str, functions: tuple[Function, ...]) -> None:
    with pytest.raises(GadgetError):
        Gadget(name, UBLOX_TOBY_L200, "1", "02:00:00:00:00:01", "02:00:00:00:00:02", functions)


def test_a_controller_is_chosen() -> None:
    found = [Controller("dummy_udc.0", "dummy_udc", "tandem-a"), Controller("dummy_udc.1", "dummy_udc", None)]
    assert choose(None, found).name == "dummy_udc.1"
    assert choose("dummy_udc.1", found).name == "dummy_udc.1"
    with pytest.raises(GadgetError, match="taken by the gadget tandem-a"):
        choose("dummy_udc.0", found)
    with pytest.raises(GadgetError, match=r"no controller 'x'; there are: dummy_udc\.0, dummy_udc\.1"):
        choose("x", found)
    with pytest.raises(GadgetError, match="every controller is taken"):
        choose(None, found[:1])
    with pytest.raises(GadgetError, match="dr_mode=peripheral"):
        choose(None, [])
