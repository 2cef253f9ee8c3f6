"""What a modem's process is given, and who the modem then is: made-up identities that follow from operator and seed."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tandem_bench.modem.dialogue import Family, Modem
from tandem_bench.modem.faults import Fault
from tandem_bench.modem.timeline import Timeline


@dataclass(frozen=True)
class Setup:
    """What one modem process is given. ``epoch_ns``: CLOCK_MONOTONIC at the scenario's start. ``port_mode``: of the terminal.
    ``socket``: name of an abstract socket to be reached by, then there is no terminal and ``link`` is not made."""

    family: Family
    timeline: Timeline
    operator: str
    epoch_ns: int
    link: Path
    imei: str
    seed: int
    echo: bool = True
    control: Path | None = None
    json_log: Path | None = None
    port_mode: int = 0o660
    socket: str | None = None
    schedule: Iterable[tuple[float, Fault]] = field(default_factory=tuple)


def made_up_imei(operator: str, seed: int) -> str:
    """An IMEI that no real modem has: test equipment starts with 00 (3GPP TS 23.003 6.2), the last digit checks (Luhn)."""
    digits = "00440101" + f"{random.Random(f'imei {operator} {seed}').randrange(10**6):06d}"
    return digits + luhn(digits)


def luhn(digits: str) -> str:
    """The check digit for ``digits``: every second digit from the right is doubled."""
    doubled = [int(d) * (2 if i % 2 == 0 else 1) for i, d in enumerate(reversed(digits))]
    return str(-sum(d // 10 + d % 10 for d in doubled) % 10)


def modem(setup: Setup) -> Modem:
    """The modem's identity: IMSI and card number follow from operator, home network and seed."""
    number = random.Random(f"sim {setup.operator} {setup.seed}").randrange(10**9)
    plmn = setup.timeline.home_plmn
    card = f"8999{plmn:0<6}{number:08d}"[:18]
    return Modem(
        imei=setup.imei,
        imsi=f"{plmn}{number:010d}"[:15],
        iccid=card + luhn(card),
        operator=setup.operator,
        home_plmn=plmn,
        powers_up_echoing=setup.echo,
        echo=setup.echo,
    )
