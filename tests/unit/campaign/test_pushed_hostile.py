"""The server's queue on a probe when requests and answers are lost, the power goes, and the server says nonsense."""

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pushing import PushedTo, PushingServer

from tandem.app.campaign.queue import FILE, read
from tandem.app.campaign.scheduler import MOST_ATTEMPTS
from tandem.schema.campaign_queue import FORMAT, pushed_told

pytestmark = pytest.mark.usefixtures("disk")


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_whatever_is_lost_each_run_is_made_once(data, tmp_path_factory):
    """Requests that do not arrive, answers that do not, power cuts between any two seconds: every campaign ends, no run is made
    twice, and none is left out but one that the power cut off three times."""
    folder, server = tmp_path_factory.mktemp("probe"), PushingServer()
    pushes = [server.push(f"c{n}", data.draw(st.sampled_from([10, 50, 90]))) for n in range(3)]
    good = (True, True)
    fate = st.sampled_from([good, good, good, (True, False), (False, False)])
    server.network = lambda _method, _url: data.draw(fate)
    probe, finished, attempts = PushedTo(server, folder), [], Counter()
    for life in range(40):
        if life > 25:
            server.network = lambda _method, _url: good
        cut = data.draw(st.booleans()) if life <= 25 else False
        for _ in range(data.draw(st.integers(1, 6))):
            probe.watch.soon()
            probe.watch.turn()
            probe.kit.ticks()
            if probe.kit.campaigns.measuring and data.draw(st.booleans()):
                finished.append(probe.asked()[-1])
                probe.kit.finish()
                probe.kit.ticks()
        if cut:
            attempts.update(probe.asked())
            probe = PushedTo(server, folder, f"boot-{life}", probe.kit.t + 1)
    while set(server.states()) != {"done"}:
        assert len(finished) <= 12, finished
        probe.watch.soon()
        probe.watch.turn()
        probe.kit.ticks()
        if probe.kit.campaigns.measuring:
            finished.append(probe.asked()[-1])
            probe.kit.finish()
    attempts.update(probe.asked())
    assert len(set(finished)) == len(finished)
    missing = {(push, n) for push in pushes for n in range(4)} - set(finished)
    assert [attempts[run] for run in missing] == [MOST_ATTEMPTS] * len(missing)  # cut off so often, it is given up


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@given(st.integers(100, 599), json_values, st.sampled_from(["format", "campaigns", "row", "text", "withdraw", "whole"]))
def test_a_hostile_server_ends_nothing(tmp_path_factory, status, value, where):
    server = PushingServer()
    probe = PushedTo(server, tmp_path_factory.mktemp("probe"))
    row = {**pushed_told(server.rows[server.push()]["pushed"]), "name": value}
    said = {
        "format": {"format": value, "campaigns": []},
        "campaigns": {"format": FORMAT, "campaigns": value},
        "row": {"format": FORMAT, "campaigns": [row]},
        "text": {"format": FORMAT, "campaigns": [], "text": value},
        "withdraw": {"ok": True, "withdraw": value},
        "whole": value,
    }[where]
    server.answer = lambda _method, _url: (status, said)
    probe.seconds(3)
    server.answer = lambda method, url: (status, said) if method == "PUT" or url.count("/") > 2 else None
    probe.watch.soon()
    probe.seconds(3)
    server.answer = lambda _method, _url: None
    for _ in range(12):
        probe.watch.soon()
        probe.seconds(1)
    assert server.states() in (["done"], ["refused"])


@pytest.mark.parametrize(
    "answer", [(500, None), (404, None), (200, None), (200, {"format": "x"}), (401, {"error": "a\n" * 9000})]
)
def test_nonsense_is_one_line_in_the_log(server, probe, caplog, answer):
    server.answer = lambda _method, _url: answer
    for _ in range(5):
        probe.watch.soon()
        probe.second()
    (line,) = [record.getMessage() for record in caplog.records if "queue of campaigns" in record.getMessage()]
    assert "\n" not in line
    assert len(line) < 600


@given(
    st.binary(max_size=200)
    | json_values.map(lambda v: json.dumps({"format": "tandem-campaign-probe-queue/1", "campaigns": v}).encode())
)
def test_a_queue_file_that_is_broken_is_no_queue(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("queue")
    (folder / FILE).write_bytes(content)
    assert read(folder) == []
