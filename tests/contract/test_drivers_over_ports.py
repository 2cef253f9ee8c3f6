"""Every transcript played by a port or a web server, and the collector's own poller at it: the record is the one expected."""

from __future__ import annotations

import json
import queue
from pathlib import Path

import pytest
from transcript_modem import played

import tandem.modem
from tandem.modem.poll import Poll
from tandem.modem.poller import Poller
from tandem.modem.registry import drivers

MODEM = Path(tandem.modem.__file__).parent
FIRSTS = [
    pytest.param(family, file, id=f"{family}-{model}")
    for family in sorted(drivers())
    for model, file in sorted(
        {
            json.loads(file.read_text())["identity"]["model"]: file
            for file in sorted((MODEM / family / "transcripts").glob("*.json"), reverse=True)
        }.items()
    )
]
"""One transcript of each model."""


@pytest.mark.parametrize(("family", "file"), FIRSTS)
def test_the_poller_makes_the_expected_record(family: str, file: Path) -> None:
    content, driver = json.loads(file.read_text()), drivers()[family]
    heard: queue.SimpleQueue[Poll] = queue.SimpleQueue()
    # A web page does not say which model it is of: the family is named then, as a configuration would.
    name = "auto" if driver.transport == "at" else family
    with played(content, driver.transport) as where:
        poller = Poller("a", "A", where, name, 1.0, heard.put)
        poller.start()
        try:
            poll = heard.get(timeout=120)
        finally:
            poller.stop(60)
    assert poll.failure is None
    assert poll.driver == family
    record = poll.record()
    told = {**record.fields, "rat": record.tags.get("rat")}
    expected = content["expected"]
    assert {name: told.get(name) for name in expected} == expected
