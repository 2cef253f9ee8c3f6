"""The bench unit's numbers are those of the gadget itself."""

from __future__ import annotations

from pathlib import Path

from tandem_bench.gadget.description import CONTROLLERS, PROFILES, Endpoints, fits, gadget_of

GUIDE = " ".join(
    (Path(__file__).parents[3] / "hardware" / "guides" / "bench-unit.md")
    .read_text(encoding="utf-8")
    .replace("> ", "")
    .split()
)
MODEM = gadget_of("tandem-a", PROFILES["ublox"], 1)


def test_what_a_controller_has_and_a_modem_needs() -> None:
    has, needs = CONTROLLERS["dwc2"], MODEM.endpoints
    two = Endpoints(2 * needs.into_host, 2 * needs.out_of_host)
    assert f"(`dwc2`) has {has} endpoints" in GUIDE
    assert f"one modem needs {needs}; two would need {two}" in GUIDE
    assert f"`{has} endpoints`" in GUIDE
    assert f"one modem needs {needs}." in GUIDE


def test_one_fits_and_two_do_not() -> None:
    fits(MODEM, "dwc2")
    has, needs = CONTROLLERS["dwc2"], MODEM.endpoints
    assert 2 * needs.into_host > has.into_host
    assert "One Pi plays one modem." in GUIDE
    assert "two bench units" in GUIDE
    assert "two AT ports and a network device" in GUIDE
    assert len(MODEM.ports) == 2
    assert MODEM.network is not None
