"""``tandem campaign`` as it is typed: what it prints and its exit status, without a collector."""

import json
import re
from pathlib import Path

import pytest
from test_check import CONFIG

from tandem import campaigns
from tandem.cli.campaign import span
from tandem.cli.main import main

OWN = """\
format = "tandem-campaign-file/1"
name = "own"
title = "One's own"
roles = ["a", "b"]
[budget]
path_bytes = 1_000_000
[[step]]
name = "s"
experiment = "download"
repetitions = 10
[step.parameters]
pairing = "sequential"
bytes = [10_000, 20_000]
[step.trigger]
on = "periodic"
every_s = 600
[form.short]
repetitions = 1
"""


@pytest.fixture
def own(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(OWN)
    (tmp_path / "config.toml").write_text(CONFIG)
    return file


def test_list_and_show_print_every_campaign(capsys):
    assert main(["campaign", "list"]) == 0
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()] == campaigns.names()
    assert main(["campaign", "list", "--json"]) == 0
    assert {row["name"] for row in json.loads(capsys.readouterr().out)} == set(campaigns.names())
    assert main(["campaign", "show", "chen-sizes"]) == 0
    assert capsys.readouterr().out == campaigns.text("chen-sizes")
    assert main(["campaign", "show", "chan-sizes"]) == 2
    assert "there is no campaign of that name; hint: a file's path, or one of adarsh" in capsys.readouterr().err


def test_check_estimates_bytes_time_and_days(own, capsys):
    assert main(["campaign", "check", str(own), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["estimate"]
    assert told["runs"] == 20
    # TCP on each path and half of MPTCP: 1.5 times 10 × (10 kB + 20 kB)
    assert told["bytes_by_role"] == {"a": 450_000, "b": 450_000}
    assert told["days"] == pytest.approx(20 * 600 / 86400)
    assert told["held_by"] == "the trigger of s"
    assert main(["campaign", "check", str(own)]) == 0
    printed = capsys.readouterr().out
    assert "s: download, 20 runs (2 arms × 10)" in printed
    assert "begins every 600 s" in printed
    assert printed.endswith("the campaign is good\n")


def test_a_plan_too_small_takes_months_and_a_days_bytes_are_there_from_the_first_day_on(own, capsys):
    def held_by(budget):
        own.write_text(OWN.replace("path_bytes = 1_000_000", budget))
        assert main(["campaign", "check", str(own), "--json"]) == 0
        told = json.loads(capsys.readouterr().out)["estimate"]
        return told["held_by"], told["days"]

    holder, days = held_by("path_bytes = 100_000")
    assert holder == "a's plan"
    assert 4 * 30 < days < 4 * 31
    day = "path_bytes = 1_000_000\nday_bytes = "
    assert held_by(day + "450_000")[0] == "the trigger of s"
    assert held_by(day + "449_999") == ("a's bytes in a day", 1)
    assert held_by(day + "100_000") == ("a's bytes in a day", 4)


def test_round_trips_all_the_time_count_in_the_plan(own, capsys):
    config = own.with_name("config.toml")
    of_a_sim = 86_400 * (200 + 2 * 44)  # its own questions and answers, and the records of both paths

    def told(*more, status=0):
        assert main(["campaign", "check", str(own), "--config", str(config), *more]) == status
        return capsys.readouterr()

    assert json.loads(told("--json").out)["plan"]["round_trip_day_bytes"] == 0
    config.write_text(CONFIG + "[round_trip]\nenabled = true\n")
    plan = json.loads(told("--json").out)["plan"]
    assert plan["round_trip_day_bytes"] == of_a_sim
    assert plan["by_role"]["a"]["month_bytes"] == 450_000 + 31 * of_a_sim
    assert plan["by_role"]["a"]["day_bytes"] == 450_000 + of_a_sim
    assert "round trips all the time ([round_trip]): 24.9 MB a day of each SIM" in told().out
    enough = 31 * (of_a_sim + 30_000)
    assert told("--plan-bytes", str(enough)).err == ""
    err = told("--plan-bytes", str(enough - 1), status=1).err
    assert "its largest run takes 0.03 MB and round trips 24.9 MB of a SIM, whose day_bytes are 24.9 MB" in err
    err = told("--plan-bytes", str(450_000 + 31 * of_a_sim - 1), status=1).err
    assert "does not fit the plan: a takes 0.772 GB a month (0.771 GB of it round trips)" in err


def test_check_says_whose_local_time_a_window_is_and_where_no_zone_is_installed(own, capsys, monkeypatch):
    window = OWN.replace('"periodic"\nevery_s = 600', '"window"\nbetween = "00:00-05:00"')
    own.write_text(window)
    assert main(["campaign", "check", str(own)]) == 0
    assert "begins between 00:00 and 05:00, local time of the probe" in capsys.readouterr().out
    own.write_text('timezone = "America/Los_Angeles"\n' + window)
    assert main(["campaign", "check", str(own)]) == 0
    assert "begins between 00:00 and 05:00, local time of America/Los_Angeles" in capsys.readouterr().out
    monkeypatch.setattr("zoneinfo.available_timezones", set)
    assert main(["campaign", "check", str(own)]) == 2
    assert (
        f"{own}:1: timezone 'America/Los_Angeles': this machine has no time zones; hint: sudo apt"
        in capsys.readouterr().err
    )


def test_check_says_whether_a_form_fits_the_plan(own, capsys):
    assert main(["campaign", "check", "mohan-dual-lte", "--form", "pilot", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["form"], told["plan"]["fits"], told["plan"]["day_bytes"]) == ("pilot", True, 322_580_645)
    # TCP on each path and half of MPTCP, 120 times: 3.6 GB, and the traceroutes
    assert told["plan"]["by_role"]["isp_a"]["month_bytes"] == 3_601_300_000
    assert main(["campaign", "check", "mohan-dual-lte"]) == 1
    printed = capsys.readouterr()
    assert "(day_bytes):" in printed.out
    assert re.fullmatch(
        r"tandem: mohan-dual-lte.toml: form paper does not fit the plan: [^\n]+; hint: --form pilot, or [^\n]+\n",
        printed.err,
    )
    assert main(["campaign", "check", str(own), "--plan-bytes", "600_000"]) == 1
    assert "its largest run takes 0.03 MB of a SIM, whose day_bytes are 0.0194 MB; hint: few" in capsys.readouterr().err


def test_a_form_that_the_file_has_not_or_a_mistake_in_one_and_a_file_that_is_none(own, capsys, tmp_path):
    assert main(["campaign", "check", str(own), "--form", "pilot"]) == 2
    assert capsys.readouterr().err == f"tandem: {own}:17: there is no form 'pilot'; hint: one of paper, short\n"
    own.write_text(OWN + "[form.short.step.s.parameters]\nbytes = -1\n")
    assert main(["campaign", "check", str(own)]) == 2
    assert f"{own}:20: step s: parameter 'bytes': -1 B is below 1 B" in capsys.readouterr().err
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    for name, words in (("absent.toml", "No such file"), ("binary.toml", "not UTF-8")):
        assert main(["campaign", "check", str(tmp_path / name)]) == 2
        assert words in capsys.readouterr().err


def test_status_and_stop_without_anything_and_wrong_roles(own, tmp_path, capsys):
    config = ["--config", str(tmp_path / "config.toml")]
    assert main(["campaign", "status", *config]) == 0
    assert capsys.readouterr().out == "no campaign\n"
    assert main(["campaign", "status", "own", *config]) == 2
    assert "holds no campaign" in capsys.readouterr().err
    assert main(["campaign", "stop", *config]) == 0
    assert capsys.readouterr().out == "no campaign is under way\n"
    for path, words in (("a", "no ROLE=NAME"), ("c=one", "'c' is no role"), ("a=six", "'six' is no path")):
        assert main(["campaign", "run", str(own), "--path", path, *config]) == 2
        assert words in capsys.readouterr().err


PAGE = Path(__file__).parents[5] / "docs/campaigns/campaigns.md"
HEAD = "| campaign | runs | at least | bytes of a SIM | of 10 GB | largest run |"


def row(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["campaign", "check", name, "--form", "pilot", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    found, plan = told["estimate"], told["plan"]
    most = max(plan["by_role"].values(), key=lambda one: one["month_bytes"])
    size, largest = f"{most['month_bytes'] / 1e9:.1f} GB", f"{found['largest_run_bytes'] / 1e6:.0f} MB"
    days = span(found["days"] * 86400)
    return f"| `{name}` | {found['runs']} | {days} | {size} | {most['plan_share']:.0%} | {largest} |"


def test_the_table_of_pilots_is_what_check_says(capsys):
    table = "\n".join([HEAD, "|---|---|---|---|---|---|", *(row(name, capsys) for name in campaigns.names())])
    assert table in PAGE.read_text("utf-8"), f"the page has another table; this one is right:\n{table}"
