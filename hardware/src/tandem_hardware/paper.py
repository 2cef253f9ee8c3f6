"""What is written and drawn of parts and power: bom.md, power.svg, the table in hardware/README.md."""

from __future__ import annotations

from pathlib import Path

from tandem_hardware import bom, builds
from tandem_hardware.blocks import with_blocks
from tandem_hardware.bom_page import page
from tandem_hardware.duty import duty
from tandem_hardware.errors import SourceError
from tandem_hardware.places import HARDWARE
from tandem_hardware.power import Budget, budget
from tandem_hardware.power_cli import read_campaign
from tandem_hardware.power_text import markdown
from tandem_hardware.product import Product

README = HARDWARE / "README.md"


def products() -> list[Product]:
    """In the order of their making."""
    return [
        Product(Path("bom.md"), _page),
        Product(Path("power.svg"), _plot, _same_plot),
        Product(Path("README.md"), _readme),
    ]


def budgets() -> tuple[list[Budget], float, str]:
    """Of all builds with the campaign and the hours of builds.toml."""
    parts = bom.load()
    known = builds.load(parts)
    campaign = read_campaign(known.campaign)
    share = duty(campaign, known.hours_on).share
    found = [budget(parts, known, one, 1.0 if one.always_on else share) for one in known.builds.values()]
    return found, known.hours_on, campaign.name


def _page() -> bytes:
    parts = bom.load()
    return page(parts, builds.load(parts)).encode()


def _plot() -> bytes:
    from tandem_hardware.power_plot import draw

    found, hours_on, _ = budgets()
    return draw(found, hours_on, "svg")


def _same_plot(kept: bytes, fresh: bytes) -> str | None:
    from tandem_hardware.power_plot import same_drawing

    return same_drawing(kept, fresh)


def _readme() -> bytes:
    if not README.is_file():
        raise SourceError("README.md: missing; mend: git restore hardware/README.md")
    return with_blocks(README, README.read_text(encoding="utf-8"), {"power-budget": _table}).encode()


def _table() -> str:
    found, hours_on, name = budgets()
    return f"{markdown(found, hours_on)}\nCampaign `{name}`, {hours_on:g} hours a day on the move."
