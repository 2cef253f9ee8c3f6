"""The unit file of the bench unit starts what the bench's program has."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tandem_bench.cli.main import parser as bench_parser

ROOT = Path(__file__).parents[3]


def test_the_units_file_starts_what_there_is() -> None:
    unit = (ROOT / "firmware" / "bench" / "system" / "tandem-bench-gadget.service").read_text(encoding="utf-8")
    values = dict(
        pair.split("=") for line in re.findall(r"^Environment=(.*)$", unit, re.MULTILINE) for pair in line.split()
    )
    lines = re.findall(r"^ExecStart(?:Pre)?=/opt/tandem/\.venv/bin/tandem-bench (.*)$", unit, re.MULTILINE)
    assert len(lines) == 2
    for line in lines:
        bench_parser().parse_args(shlex.split(re.sub(r"\$\{(\w+)\}", lambda found: values[found[1]], line)))
