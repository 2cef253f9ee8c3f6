"""A campaign carried out and stored: begun, gone on with after a power cut, told by hand, stopped."""

import hashlib
import json
from dataclasses import replace

import pytest
from driven import Kit, begun
from road import step

from tandem.app.campaign import progress
from tandem.app.campaign.check import placed
from tandem.app.campaign.progress import Progress, campaign_records, stored
from tandem.cli.campaign import status_lines
from tandem.schema.campaign import CampaignError
from tandem.schema.metrics import CAMPAIGN_STATES


def test_every_run_is_asked_for_stored_and_told(tmp_path):
    kit = Kit(tmp_path)
    kit.campaigns.begin(begun(kit))
    assert progress.active(tmp_path) == "x"
    kit.ticks()
    assert [e for e, _, _ in kit.asked] == ["download"]
    assert kit.campaigns.holds_maintenance
    kit.ticks(5)
    assert len(kit.asked) == 1  # one at a time
    kit.used = {"wlan": 700, "lte": 30}
    kit.finish()
    kit.ticks()
    state = kit.campaigns.status()
    assert (state["steps"], state["runs"]) == ({"s": {"made": 1, "of": 6}}, {"ok": 1})
    assert {r: b["used_bytes"] for r, b in state["budget"].items() if r == "b"}["b"] >= 30
    kit.to_the_end()
    state = kit.campaigns.status()
    assert (state["state"], state["runs"]) == ("done", {"ok": 6})
    assert progress.active(tmp_path) is None
    entries = Progress(tmp_path / "x").entries()
    assert [(e.number, e.ok, e.runs) for e in entries] == [(n, True, ["run-1"]) for n in range(6)]
    assert entries[0].bytes_by_role == {"a": 700, "b": 30}
    assert stored(tmp_path, "x", kit.now())["steps"] == {"s": {"made": 6, "of": 6}}
    told = kit.asked[0][2]
    assert (told["name"], told["step"], told["number"], told["roles"]) == ("x", "s", 0, {"a": "wlan", "b": "lte"})


def test_every_change_is_told_as_records_of_the_schema_in_order(tmp_path):
    kit = Kit(tmp_path)
    told = []
    kit.campaigns.on_change = lambda status: told.append(
        campaign_records(status, {"wlan": "Alpha"}, kit.now().utc_s, 1)
    )
    kit.campaigns.begin(begun(kit, step(repetitions=2), "[budget]\nday_bytes = 5_000_000\npath_bytes = 9_000_000\n"))
    kit.ticks()
    kit.used = {"wlan": 700, "lte": 30}
    kit.finish(ok=False)
    kit.to_the_end()
    heads = [records[0].fields for records in told]
    assert [(f["state"], f["made"], f["ok"], f["failed"]) for f in heads] == [
        ("waiting", 0, 0, 0), ("running", 0, 0, 0), ("waiting", 1, 0, 1), ("running", 1, 0, 1), ("waiting", 2, 1, 1), ("done", 2, 1, 1),
    ]  # fmt: skip
    assert [CAMPAIGN_STATES[f["state_code"]] for f in heads] == [f["state"] for f in heads]
    assert {f["of"] for f in heads} == {2}
    ages = [f["age_s"] for f in heads]
    assert ages == sorted(ages)
    steps = [record for record in told[-1] if record.measurement == "campaign_step"]
    assert [(record.fields["made"], record.fields["of"]) for record in steps] == [(2, 2)]
    a, b = (record for record in told[-1] if record.measurement == "campaign_data")
    assert (a.tags["role"], a.tags["path"], a.tags["operator"]) == ("a", "wlan", "Alpha")
    assert "operator" not in b.tags
    told = [a.fields[name] for name in ("used_bytes", "budget_bytes", "left_bytes")]
    assert told == [700, 9_000_000, 9_000_000 - 700]
    assert a.fields["day_budget_bytes"] == 5_000_000
    assert (b.fields["used_bytes"], b.fields["left_bytes"]) == (30, 9_000_000 - 30)
    assert a.fields["reset_in_s"] > 0
    (record, *data) = campaign_records(kit.campaigns.status(), {}, None, 1)
    assert "age_s" not in record.fields, "without the time"
    assert all("reset_in_s" not in one.fields for one in data)


def test_a_campaign_gone_on_with_or_stopped_is_told(tmp_path):
    first = Kit(tmp_path)
    first.campaigns.begin(begun(first))
    kit, told = Kit(tmp_path), []
    kit.campaigns.on_change = told.append
    kit.campaigns.resume()
    assert told[-1]["state"] == "waiting"
    kit.campaigns.stop()
    assert told[-1]["state"] == "stopped"


@pytest.mark.parametrize("torn", [b"", b'{"step":"s","number":', b"\x00\x00\xff\n"])
def test_after_a_power_cut_it_goes_on_where_it_was(tmp_path, torn):
    kit = Kit(tmp_path)
    kit.campaigns.begin(begun(kit))
    kit.ticks()
    kit.finish()
    kit.ticks(3)
    assert len(kit.asked) == 2  # the second is under way when the power goes
    with (tmp_path / "x" / "runs.jsonl").open("ab") as file:
        file.write(torn)
    again = Kit(tmp_path, "boot-2", 500.0)
    again.campaigns.resume()
    again.to_the_end()
    before = [request["bytes"] for _, request, _ in kit.asked]
    after = [request["bytes"] for _, request, _ in again.asked]
    assert after[0] == before[1]
    assert [c["attempt"] for _, _, c in again.asked] == [2, 1, 1, 1, 1]
    whole = Kit(tmp_path / "other")
    whole.campaigns.begin(begun(whole))
    whole.to_the_end()
    assert [r["bytes"] for _, r, _ in whole.asked] == [before[0], *after]
    assert again.campaigns.status()["runs"] == {"ok": 6, "cut_off": 1}


def test_run_goes_on_with_what_was_stopped_and_otherwise_begins_again(tmp_path):
    kit = Kit(tmp_path)
    kit.campaigns.begin(begun(kit))
    kit.ticks()
    assert kit.campaigns.stop() == "x"
    assert kit.campaigns.under_way  # the run that is under way counts
    kit.finish()
    kit.ticks()
    assert kit.campaigns.status()["state"] == "stopped"
    assert kit.campaigns.begin(begun(kit))["steps"] == {"s": {"made": 1, "of": 6}}
    with pytest.raises(CampaignError, match="x is under way; hint: tandem campaign stop"):
        kit.campaigns.begin(begun(kit))
    kit.campaigns.stop()
    assert kit.campaigns.begin(begun(kit), anew=True)["steps"] == {"s": {"made": 0, "of": 6}}
    assert (tmp_path / "x.1" / "runs.jsonl").exists()
    kit.to_the_end()
    assert kit.campaigns.begin(begun(kit))["steps"] == {"s": {"made": 0, "of": 6}}, "a finished one"
    kit.ticks()
    kit.finish()
    kit.ticks()
    kit.campaigns.stop()
    kit.ticks()
    kit.finish()
    kit.ticks()
    assert kit.campaigns.begin(begun(kit, step(repetitions=2)))["steps"] == {"s": {"made": 0, "of": 2}}, "a changed one"


def test_each_run_says_whose_local_time_it_was_also_after_a_restart_in_another_zone_than_the_files(tmp_path):
    kit = Kit(tmp_path)
    there = begun(kit, top='timezone = "Europe/Berlin"')
    kit.campaigns.begin(replace(there, campaign=placed(there.campaign, "America/Los_Angeles")))
    kit.ticks()
    again = Kit(tmp_path, "boot-2", 100.0)
    again.campaigns.resume()
    again.ticks(40)
    for told in (kit.asked[0][2], again.asked[0][2]):
        assert (told["timezone"], told["utc_offset_s"]) == ("America/Los_Angeles", -8 * 3600)
        assert told["sha256"] == hashlib.sha256(there.text.encode()).hexdigest()
    assert "  local time: America/Los_Angeles" in status_lines(again.campaigns.status())


def test_what_can_never_be_begun_is_a_failure_with_its_reason(tmp_path):
    kit = Kit(tmp_path)
    kit.refusal = "unknown experiment"
    kit.campaigns.begin(begun(kit, step(repetitions=1)))
    kit.ticks(2)
    assert kit.campaigns.status()["runs"] == {"failed": 1}
    (entry,) = Progress(tmp_path / "x").entries()
    assert (entry.failure, entry.bytes_by_role) == ("unknown experiment", {"a": 0, "b": 0})


def test_another_measurement_is_no_run_of_the_campaign_and_a_disk_that_takes_nothing_stops_no_collector(tmp_path):
    kit = Kit(tmp_path)
    kit.busy = True
    kit.campaigns.begin(begun(kit))
    kit.ticks(5)
    assert not (tmp_path / "x" / "runs.jsonl").exists()
    kit.busy = False
    (tmp_path / "x" / "runs.jsonl").mkdir()
    kit.ticks(3)
    assert (len(kit.asked), kit.campaigns.under_way) == (1, True)


def test_a_broken_head_is_told(tmp_path, caplog):
    kit = Kit(tmp_path)
    kit.campaigns.begin(begun(kit))
    (tmp_path / "x" / "begun.json").write_text(json.dumps({"format": "tandem-campaign-progress/9"}))
    again = Kit(tmp_path)
    again.campaigns.resume()
    assert not again.campaigns.under_way
    assert "cannot be gone on with" in caplog.text
    with pytest.raises(CampaignError, match=r"begun\.json: holds no campaign: .*; hint: begin the campaign anew"):
        stored(tmp_path, "x", kit.now())
