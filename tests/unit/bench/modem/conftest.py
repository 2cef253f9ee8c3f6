"""Fixtures of the tests of the emulated modems."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.modem_on_fake_clock import MODEM, Desk, write_timeline
from tandem_bench.modem.dialogue import Modem
from tandem_bench.modem.emulator import Emulator
from tandem_bench.modem.families import FAMILIES
from tandem_bench.modem.timeline import Timeline, read


@pytest.fixture
def timeline(tmp_path: Path) -> Callable[..., Timeline]:
    return lambda *ticks, **options: read(write_timeline(tmp_path / "timeline.jsonl", list(ticks), **options))


@pytest.fixture
def desk(timeline: Callable[..., Timeline]) -> Callable[..., Desk]:
    """Make a modem of a family, started, its radio given by ticks; without echo unless asked."""

    def make(family: str, *ticks: dict[str, Any], seed: int = 1, echo: bool = False, **options: Any) -> Desk:
        made = Desk()
        modem = Modem(*(getattr(MODEM, k) for k in ("imei", "imsi", "iccid", "operator", "home_plmn")), echo=echo)
        made.emulator = Emulator(
            FAMILIES[family], modem, timeline(*(ticks or ({},)), **options), made, made.agenda, lambda: made.now_s,
            random.Random(seed), lambda _fault: None,
        )  # fmt: skip
        made.emulator.start()
        return made

    return make
