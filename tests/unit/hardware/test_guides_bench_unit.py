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
    fits(MODEM, "dwc2")
    assert two.into_host > has.into_host
    assert (len(MODEM.ports), MODEM.network is None) == (2, False)
    for told in (
        f"(`dwc2`) has {has} endpoints",
        f"one modem needs {needs}; two would need {two}",
        f"`{has} endpoints`",
        f"one modem needs {needs}.",
        "One Pi plays one modem.",
        "two bench units",
        "two AT ports and a network device",
    ):
        assert told in GUIDE, told
