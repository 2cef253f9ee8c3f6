"""The example campaign's plan: every campaign in it is one that the collector takes, and follows from the seed."""

from pathlib import Path

from tandem.app.campaign.check import fitted
from tandem.app.campaign.files import load
from tandem.app.registry import Registry
from tandem_bench.example.acts import in_place, on_the_way
from tandem_bench.example.outcome import table

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
