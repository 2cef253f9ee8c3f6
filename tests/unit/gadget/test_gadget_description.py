"""What a gadget needs of a controller."""

import re

import pytest

from tandem_bench.gadget.controllers import Controller, choose
from tandem_bench.gadget.description import UBLOX_TOBY_L200, Endpoints, Function, Gadget, GadgetError, fits, gadget_of


def test_a_modem_fits_a_raspberry_pi_with_one_endpoint_to_spare() -> None:
    modem = gadget_of("tandem-a", UBLOX_TOBY_L200, 1)
    assert modem.endpoints == Endpoints(6, 3)
    fits(modem, "dwc2")
    fits(modem, "dummy_udc")


def test_a_third_port_does_not_and_the_line_says_what_to_leave_out() -> None:
    modem = gadget_of("tandem-a", UBLOX_TOBY_L200, 1, ports=3)
    with pytest.raises(
        GadgetError,
        match=r"^gadget tandem-a needs 8 IN and 4 OUT endpoints, the controller dwc2 has 7 IN .*mend: fewer AT",
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
