"""The table of pilots in the campaigns' README is what ``tandem campaign check NAME --form pilot --json`` says."""

import json
import math
from importlib.resources import files

import pytest

from tandem import campaigns
from tandem.cli.main import main

HEAD = "| campaign | runs | days | bytes of a SIM | of 10 GB | largest run |"


def row(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["campaign", "check", name, "--form", "pilot", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    found, plan = told["estimate"], told["plan"]
    most = max(plan["by_role"].values(), key=lambda one: one["month_bytes"])
    size, largest = f"{most['month_bytes'] / 1e9:.1f} GB", f"{found['largest_run_bytes'] / 1e6:.0f} MB"
    days = math.floor(found["days"]) + 1
    return f"| `{name}` | {found['runs']} | {days} | {size} | {most['plan_share']:.0%} | {largest} |"


def test_the_table_of_pilots_is_what_check_says(capsys: pytest.CaptureFixture[str]) -> None:
    table = "\n".join([HEAD, "|---|---|---|---|---|---|", *(row(name, capsys) for name in campaigns.names())])
    readme = files(campaigns).joinpath("README.md").read_text("utf-8")
    assert table in readme, f"the README has another table; this one is right:\n{table}"
