"""The example campaign's plan, and a campaign file made ready for the bench."""

from pathlib import Path

import pytest

from tandem import campaigns
from tandem.app.campaign.check import fitted
from tandem.app.runs.registry import Registry
from tandem.campaigns import load
from tandem.schema.campaign import arms
from tandem.schema.campaign_reader import parse
from tandem_bench.run.compared import FileError, by_hand, prepare
from tandem_bench.run.example import in_place, on_the_way, table

ACTS = on_the_way(7) + in_place(7)


def test_the_collector_takes_each(tmp_path: Path) -> None:
    registry = Registry(None)
    for act in ACTS:
        file = tmp_path / f"{act.name}.toml"
        file.write_text(act.text)
        campaign, left_out = fitted(load(str(file)), registry)
        assert (campaign.name, campaign.seed, left_out) == (act.name, 7, [])
        assert set(act.paths) <= set(campaign.roles), act.name
        by_hand = [step.trigger for step in campaign.steps if step.trigger.on == "hand"]
        assert all(trigger.labels == (act.label,) for trigger in by_hand), act.name
        assert bool(by_hand) is bool(act.label), act.name


def test_the_table_tells_each_figure_and_why_it_is_lacking() -> None:
    rows = [
        {"paper": "One", "label": "Figure 2", "title": "Drawn", "drawn": True, "lacks": ""},
        {"paper": "One", "label": "Table 1", "title": "Not", "drawn": False, "lacks": "polls of the modems"},
    ]
    lines = table(rows).splitlines()
    assert lines[1:] == ["  One: 1 of 2 figures", "    Figure 2  Drawn", "    Table 1   LACKING: polls of the modems"]


OWN = """\
format = "tandem-campaign-file/1"
name = "own"
title = "one's \\"own\\""
roles = ["one", "two"]
quiet_s = 60
[budget]
day_runs = 1
[[step]]
name = "first"
experiment = "download"
repetitions = 8
order = "shuffled"
arms = [{ kind = "mptcp" }, { kind = "tcp", path = "one" }]
[step.parameters]
bytes = { log_uniform = [100, 1000] }
congestion_control = ["cubic", "reno", "bbr"]
[step.shape.one]
rate_bit_per_s = [1e6, 2_500_000]
[step.trigger]
on = "mobility_start"
[step.conditions]
mobile = true
[[step]]
name = "second"
experiment = "latency"
repetitions = 8
optional = true
[form.short]
repetitions = 2
[form.short.step.first.parameters]
congestion_control = ["cubic", "reno"]
[form.short.step.second]
skip = true
"""


@pytest.mark.parametrize("form", ["paper", "short"])
@pytest.mark.parametrize("text", [OWN, campaigns.text("steering-ab"), campaigns.text("congestion-ab")])
def test_it_has_the_arms_of_the_file_and_waits_for_a_hand_alone(text, form):
    name, written, runs, blocks = by_hand(text, form, None)
    file, ours = parse(text, "file", form=form), parse(written, "ours")
    assert (ours.name, ours.title, ours.roles, ours.seed) == (name, file.title, file.roles, file.seed)
    assert runs == {s.name: s.arm_count for s in file.steps}
    for step, made in zip(file.steps, ours.steps, strict=True):
        assert made.repetitions == step.repetitions == blocks
        assert arms(ours, made) == arms(file, step)
        assert (made.order, made.trigger.on, made.conditions.mobile) == ("blocks", "hand", None)
    assert (ours.quiet_s, ours.budget.day_runs) == (0, None)


def test_as_many_blocks_as_asked_for_and_what_cannot_be_is_refused():
    assert by_hand(OWN, "paper", 5)[3] == 5
    with pytest.raises(FileError, match="there is no form 'pilot'; hint: one of paper, short"):
        by_hand(OWN, "pilot", None)
    with pytest.raises(FileError, match="different repetitions"):
        by_hand(OWN.replace("repetitions = 8\noptional", "repetitions = 7\noptional"), "paper", None)
    with pytest.raises(FileError, match="no-such"):
        prepare("no-such", False, 1, "drive", 20, None)


def test_a_block_is_a_stretch_of_its_own_with_one_repetition_to_spare():
    comparison, played = prepare("steering-ab", "paper", 2, "drive", 20, None)
    assert (comparison.slots, comparison.begin_s, played.duration_s) == (9, 5.0, 360)
    starts = [p["t_s"] for p in played.phases if p["activity"] == "drive"]
    assert starts == [n * 20 + comparison.begin_s for n in range(18)]
    levels = played.operators["A"].columns["rsrp_dbm"]
    assert levels[:200] == levels[1600:1800] != levels[1800:2000]


def test_a_third_role_is_the_wifis_and_a_fourth_is_refused(tmp_path: Path):
    assert prepare("cordero-remote", "short", 1, "drive", 20, None)[0].paths == 3
    assert prepare("steering-ab", "paper", 1, "drive", 20, None)[0].paths == 2
    four = tmp_path / "four.toml"
    four.write_text(campaigns.text("cordero-remote").replace('"wireless"]', '"wireless", "more"]'))
    with pytest.raises(FileError, match=r"4 roles; the bench has .* three roles at most"):
        prepare(str(four), "short", 1, "drive", 20, None)
