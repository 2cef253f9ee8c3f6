"""Provisioning files of alarms: as the code makes them, as Grafana reads them, without secrets; and every alarm's
message, as people read it."""

import functools
import json
import re
from pathlib import Path

import yaml
from grafana_foundation_sdk.models import alerting
from hypothesis import given
from hypothesis import strategies as st

from support.grafana_alerting import rules, seconds
from support.grafana_templates import Told, message
from support.hostile_json import said
from tandem.schema.metrics import MODEM_STATES
from tandem_dashboards import generate
from tandem_dashboards.alarms import alarms
from tandem_dashboards.alarms.alarm import Alarm, AlarmError, now
from tandem_dashboards.alarms.provisioning import rules_document, to_yaml
from tandem_dashboards.alarms.tolerances import TOLERANCES
from tandem_dashboards.cli import READER
from tandem_dashboards.panel import DATASOURCE_TYPE, DATASOURCE_UID
from tandem_server.schema.measurements import PROBE_STATES

files = generate.alarms


@functools.cache
def committed(name):
    return yaml.safe_load((files.folder / name).read_text(encoding="utf-8"))


def test_committed_files_are_what_the_alarms_make_and_another_of_either_ending_is_drift(tmp_path) -> None:
    assert files.drift() == [], "run python -m tandem_dashboards generate"
    assert files.write(tmp_path) == sorted(files.texts())
    assert files.drift(tmp_path) == []
    (tmp_path / "rules.yaml").write_text("apiVersion: 1\n")
    (tmp_path / "policies.yaml").unlink()
    (tmp_path / "old.yml").write_text("apiVersion: 1\n")
    assert files.drift(tmp_path) == ["old.yml", "policies.yaml", "rules.yaml"]
    files.write(tmp_path)
    assert files.drift(tmp_path) == []


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=20)
KEY = st.text(alphabet="ab_:- #y", min_size=1, max_size=6)


@given(
    st.recursive(
        PLAIN | TEXT, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, max_size=3), max_leaves=8
    )
)
def test_yaml_is_read_back_as_it_was(value) -> None:
    assert yaml.safe_load(to_yaml({"x": value})) == {"x": value}


def test_rules_are_in_the_shape_of_files_and_grafanas_sdk_reads_all_of_them() -> None:
    keys = {"uid", "title", "condition", "noDataState", "execErrState", "for", "annotations", "labels", "isPaused"}
    for group in committed("rules.yaml")["groups"]:
        assert (group["folder"], group["interval"]) == ("Tandem", "60s")
        for one in group["rules"]:
            assert not {"folderUID", "ruleGroup", "orgID"} & one.keys(), "those are of the API"
            assert one["uid"] == f"tandem-{one['labels']['alarm']}"
            assert len(one["uid"]) <= 40
            assert seconds(one["for"]) % 60 == 0
            read = alerting.Rule.from_json(one)
            assert {key: read.to_json()[key] for key in keys} == {key: one[key] for key in keys}
            assert [part.ref_id for part in read.data] == [part["refId"] for part in one["data"]]


def test_the_sdk_reads_contact_points_policies_quiet_hours_and_templates() -> None:
    for name in ("contact-mail.yaml", "contact-webhook.yaml"):
        (point,) = committed(name)["contactPoints"]
        for receiver in point["receivers"]:
            assert alerting.ContactPoint.from_json(receiver).to_json() == receiver
    (policy,) = committed("policies.yaml")["policies"]
    kept = alerting.NotificationPolicy.from_json(policy).to_json()
    assert {**kept, "routes": policy["routes"], "orgId": 1} == policy
    for route in policy["routes"]:
        assert alerting.NotificationPolicy.from_json(route).to_json() == route
    (quiet,) = committed("quiet-hours.yaml")["muteTimes"]
    assert alerting.MuteTiming.from_json(quiet).name == quiet["name"] == policy["routes"][1]["mute_time_intervals"][0]
    (template,) = committed("templates.yaml")["templates"]
    assert alerting.NotificationTemplate.from_json(template).template == template["template"]
    assert {policy["receiver"], *(r["receiver"] for r in policy["routes"])} == {point["name"]}


def test_addresses_come_from_the_environment_and_nothing_else_is_taken_for_it() -> None:
    """Provisioning puts the environment into every ``$NAME`` and ``${NAME}`` of labels, annotations, settings and templates."""
    found = {
        v
        for text in files.texts().values()
        for v in re.findall(r"\$\{?(\w+)", re.sub(r"(query|expression): .*", "", text))
    }
    assert found == {"TANDEM_ALARM_MAIL", "TANDEM_ALARM_WEBHOOK"}
    whole = "".join(files.texts().values())
    assert not re.search(r"https?://(?!\{)", whole)
    assert not re.search(r"[\w.]+@[\w.]+|password|token:", whole)


def test_each_alarm_has_its_tolerance_and_only_what_watches_for_silence_fires_without_data() -> None:
    assert [a.key for a in alarms()].count("server-dead") == 1
    assert {a.key for a in alarms()} == set(TOLERANCES)
    assert len({a.title for a in alarms()}) == len(alarms())
    assert TOLERANCES["probe-not-measuring"].limit == PROBE_STATES.index("online_not_measuring")
    assert TOLERANCES["modem-lost"].limit == MODEM_STATES.index("lost")
    rules_of = [one for group in committed("rules.yaml")["groups"] for one in group["rules"]]
    without_data = {one["labels"]["alarm"]: one["noDataState"] for one in rules_of}
    assert {key for key, state in without_data.items() if state not in ("OK", "KeepLast")} == {"server-dead"}
    assert without_data["server-dead"] == "Alerting"


def test_an_alarm_that_makes_no_sense_is_refused() -> None:
    seen = now("seen", "expected")
    rows = [
        ((("A", "A", seen),), None, "x"),
        ((("A", "B", seen),), ("B", "$B"), "x"),
        ((("A 1", "B", seen),), None, "x"),
        ((("A", "B", seen),), None, "costs $HOME"),
    ]
    assert [
        (reads, computes, what)
        for reads, computes, what in rows
        if not said(AlarmError, Alarm, "probe-silent", "t", "info", reads, "gt", what, "x", "x", "/d/x", computes)
    ] == []


HERE = Path(__file__).resolve().parents[3] / "dashboards/provisioning"


def read(name):
    return yaml.safe_load((HERE / name).read_text(encoding="utf-8"))


def test_the_data_source_and_folder_are_those_that_boards_and_alarms_name():
    (source,) = read("datasources/tandem.yaml")["datasources"]
    assert (source["uid"], source["type"]) == (DATASOURCE_UID, DATASOURCE_TYPE)
    assert (source["user"], source["access"], source["editable"]) == (READER, "proxy", False)
    assert source["jsonData"] == {"version": "InfluxQL", "dbName": "tandem", "httpMode": "POST"}
    named = {
        target["datasource"]["uid"]
        for text in generate.boards.texts().values()
        for target in re.findall(r'"datasource": (\{[^}]*\})', text)
        for target in [{"datasource": json.loads(target)}]
    }
    assert named == {DATASOURCE_UID}
    asked = [query for group in committed("rules.yaml")["groups"] for rule in group["rules"] for query in rule["data"]]
    assert {query["datasourceUid"] for query in asked} == {DATASOURCE_UID, "__expr__"}
    (provider,) = read("dashboards/tandem.yaml")["providers"]
    assert (provider["folder"], provider["type"], provider["allowUiUpdates"]) == ("Tandem", "file", False)
    assert provider["options"]["path"] == "$TANDEM_BOARDS"
    assert source["secureJsonData"] == {"password": "$TANDEM_READER_PASSWORD"}
    text = (HERE / "datasources/tandem.yaml").read_text(encoding="utf-8")
    assert len(re.findall(r"^\s+password:", text, re.MULTILINE)) == 1


LABELS = (("campaign", "chen"), ("device", "mmcblk0"), ("path", "a"), ("place", "traces"), ("probe", "kit-7"))


def of_every_rule(values):
    for rule in rules(rules_document()):
        told = dict.fromkeys(rule.nodes, values)
        yield rule, Told(rule, LABELS, told, 1_795_300_000_000)


def test_every_alarm_says_what_since_when_what_to_do_and_where() -> None:
    for rule, told in of_every_rule(7200.0):
        title, text = message([told])
        assert title == f"{rule.title}: 1"
        head, *lines = text.strip().splitlines()
        assert head == f"{rule.labels['severity']}: {rule.title}"
        assert [line.split(":")[0] for line in lines] == ["What", "Since", "Do", "Board"]
        assert "[no value]" not in text
        assert "{{" not in text
        assert "1e+" not in text
        assert all(len(line) > 12 for line in lines)
        assert lines[3].startswith("Board: https://grafana.example.org/d/tandem-")
        of_all = ("server-dead", "server-disk", "gateway-overloaded", "database-failing")
        assert ("kit-7" in text) == (rule.labels["alarm"] not in of_all)


def test_forty_alarms_are_one_message_and_what_is_over_is_one_line() -> None:
    (rule,) = (r for r in rules(rules_document()) if r.uid == "tandem-modem-lost")
    at = 1_795_300_000_000
    values = {"since": 754.0}
    many = [Told(rule, (("path", "a"), ("probe", f"kit-{n}")), values, at) for n in range(40)]
    over = Told(rule, (("path", "b"), ("probe", "kit-50")), values, at, at + 3_600_000)
    title, text = message([*many, over])
    assert title == "Modem is lost: 40, over: 1"
    assert text.count("What:") == 40
    assert "12m 34s" in text
    assert (
        text.rstrip().splitlines()[-1] == "Over: Modem is lost, probe kit-50, modem b (2026-11-21 22:26 to 23:26 UTC)"
    )
    assert message([over])[0] == "Over: Modem is lost"
