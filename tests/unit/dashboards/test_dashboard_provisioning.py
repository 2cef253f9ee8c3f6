"""The provisioning files name what the boards ask for, and hold no secret."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml

from tandem_dashboards import generate
from tandem_dashboards.cli.asked import READER
from tandem_dashboards.target import DATASOURCE_TYPE, DATASOURCE_UID

HERE = Path(__file__).resolve().parents[3] / "dashboards/provisioning"


def read(name):
    return yaml.safe_load((HERE / name).read_text(encoding="utf-8"))


def test_the_data_source_is_the_one_that_boards_and_alarms_name():
    (source,) = read("datasources/tandem.yaml")["datasources"]
    assert (source["uid"], source["type"]) == (DATASOURCE_UID, DATASOURCE_TYPE)
    assert (source["user"], source["access"], source["editable"]) == (READER, "proxy", False)
    assert source["jsonData"] == {"version": "InfluxQL", "dbName": "tandem", "httpMode": "POST"}
    named = {
        target["datasource"]["uid"]
        for text in generate.texts().values()
        for target in re.findall(r'"datasource": (\{[^}]*\})', text)
        for target in [{"datasource": json.loads(target)}]
    }
    assert named == {DATASOURCE_UID}
    rules = [rule for group in read("alerting/rules.yaml")["groups"] for rule in group["rules"]]
    assert {query["datasourceUid"] for rule in rules for query in rule["data"]} == {DATASOURCE_UID, "__expr__"}


def test_no_password_stands_in_a_file():
    text = (HERE / "datasources/tandem.yaml").read_text(encoding="utf-8")
    (source,) = yaml.safe_load(text)["datasources"]
    assert source["secureJsonData"] == {"password": "$TANDEM_READER_PASSWORD"}
    assert "password" not in source
    assert len(re.findall(r"^\s+password:", text, re.MULTILINE)) == 1


def test_boards_and_alarms_are_in_one_folder():
    (provider,) = read("dashboards/tandem.yaml")["providers"]
    assert (provider["folder"], provider["type"], provider["allowUiUpdates"]) == ("Tandem", "file", False)
    assert provider["options"]["path"] == "$TANDEM_BOARDS"
    assert {group["folder"] for group in read("alerting/rules.yaml")["groups"]} == {"Tandem"}
