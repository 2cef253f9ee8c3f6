"""Boards over months ask roll-ups and have answers."""

import json
import re
import time

import months
import pytest

from tandem_dashboards.asking import ask_board
from tandem_dashboards.generate import GENERATED
from tandem_dashboards.grafana.times import range_of
from tandem_dashboards.influx import Influx as Asking
from tandem_server.schema.rollups import ROLLUPS
from tandem_server.store import PrivateInflux

BOARDS = {file.stem: json.loads(file.read_text()) for file in sorted(GENERATED.glob("*.json"))}
END_S = int(time.time()) // 60 * 60


@pytest.fixture(scope="module")
def asking(influx_binary, tmp_path_factory):
    with PrivateInflux(influx_binary, tmp_path_factory.mktemp("months"), 0) as database:
        with database.client("admin") as store:
            for policy, lines in months.everything(END_S):
                assert store.write(lines, policy=policy) == []
        password = (database.folder / "reader.password").read_text().strip()
        with Asking(database.url, "tandem", "reader", password) as client:
            yield client


@pytest.mark.parametrize("name", BOARDS)
def test_over_half_a_year_every_query_is_answered_of_roll_ups_that_have_rows(asking, name):
    """Functions over all raw records of months would take minutes in the field. One run's and the last minutes' are few, and so are
    those of the one server."""
    span = range_of("now-6M", "now", END_S * 1000)
    chosen, answers = ask_board(BOARDS[name], asking, span)
    assert answers
    for answer in answers:
        assert answer.error is None, (answer.question.name, answer.error, answer.text)
        drawn = answer.question.of == "panel"  # marks are of more kinds than are filled in
        if drawn and '"hour"."' in answer.text and not re.search(r"\bnow\(\)", answer.text):
            assert answer.rows, (answer.question.name, answer.text)
        raw = re.findall(r'FROM (?:"kept"\.)?"([a-z_]+)"', answer.text)
        figures = re.search(r"\b(mean|percentile|stddev|spread|median|sum|count)\(", answer.text)
        narrow = re.search(r'"(run|pair)" *=~? ', answer.text) or re.search(r"\bnow\(\)", answer.text)
        if figures and span.influxql in answer.text and not narrow:
            of_probes = {one for one in raw if one in ROLLUPS and "probe" in ROLLUPS[one].tags}
            assert not of_probes, (answer.question.name, answer.text)
    if "resolution" in chosen:
        assert chosen["resolution"].values == ("hour",)
