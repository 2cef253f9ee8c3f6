"""Campaigns from the server's queue on a probe that comes and goes: each taken once, in turn, whatever is lost."""

import json
from collections import Counter
from itertools import groupby

import pytest
from driven import begun
from hypothesis import given
from hypothesis import strategies as st
from pushing import STEPS, PushedTo, PushingServer, text_of
from road import step

from support.hostile_json import any_json
from tandem.app.campaign import progress
from tandem.app.campaign.progress import stored
from tandem.app.campaign.queue import FILE, read
from tandem.app.campaign.scheduler import MOST_ATTEMPTS
from tandem.schema.campaign import CampaignError
from tandem.schema.campaign_queue import FORMAT

pytestmark = pytest.mark.usefixtures("disk")


def test_taken_run_and_done_seen_at_the_server(server, probe):
    pushes = [server.push("one"), server.push("two")]
    probe.seconds(40)
    reported = [[state for state, _ in groupby(state for one, state in server.history if one == p)] for p in pushes]
    assert reported == [["running", "done"], ["taken", "running", "done"]]
    assert server.states() == ["done", "done"]
    assert probe.asked() == [(push, n) for push in pushes for n in range(4)]
    probe.seconds(3)
    assert probe.own.known == {}
    assert read(probe.kit.folder) == []
    assert [stored(probe.kit.folder, push, probe.kit.now())["runs"] for push in pushes] == [{"ok": 4}] * 2


def test_the_highest_priority_first_then_the_oldest(server, probe):
    pushes = [server.push(f"c{n}", priority) for n, priority in enumerate((50, 80, 50, 80))]
    probe.seconds(60)
    assert [p for p, n in probe.asked() if n == 0] == [pushes[1], pushes[3], pushes[0], pushes[2]]


def test_a_higher_priority_pauses_a_lower_one_between_two_runs(server, probe):
    low = server.push("low", 50)
    probe.seconds(3)
    probe.seconds(1, finish=False)
    before = len(probe.asked())
    high, same = server.push("high", 90), server.push("same", 50)
    probe.seconds(1, finish=False)
    assert len(probe.asked()) == before  # the run under way is not cut
    probe.seconds(3, finish=False)
    probe.kit.finish()
    probe.seconds(2, finish=False)
    assert (server.rows[low]["state"], server.rows[high]["state"]) == ("taken", "running")
    assert "paused" in server.rows[low]["reason"]
    probe.seconds(60)
    assert [p for p, _ in probe.asked()] == [low] * before + [high] * 4 + [low] * (4 - before) + [same] * 4
    assert server.states() == ["done"] * 3


def test_a_persons_campaign_is_never_thrown_out_and_goes_before(server, probe):
    mine = begun(probe.kit)
    probe.kit.campaigns.begin(mine)
    push = server.push(priority=100)
    probe.seconds(3, finish=False)
    assert server.states() == ["taken"]
    probe.kit.finish()
    probe.seconds(30)
    assert [p for p, _ in probe.asked()] == [None] * 6 + [push] * 4
    other = server.push("other", 100)
    probe.seconds(2, finish=False)
    assert probe.kit.campaigns.status()["push"] == other
    probe.kit.campaigns.begin(mine)
    assert progress.active(probe.kit.folder) == "x"
    with pytest.raises(CampaignError, match="x is under way"):
        probe.kit.campaigns.begin(mine)
    probe.seconds(60)
    assert [p for p, _ in probe.asked()][10:] == [other] + [None] * 6 + [other] * 3
    assert server.states() == ["done"] * 2


def test_of_one_name_the_servers_and_a_persons_are_kept_apart(server, probe):
    probe.kit.campaigns.begin(begun(probe.kit))
    probe.seconds(4)
    push = server.push("x")
    probe.seconds(40)
    assert stored(probe.kit.folder, "x", probe.kit.now())["steps"] == {"s": {"made": 6, "of": 6}}
    assert stored(probe.kit.folder, push, probe.kit.now())["steps"] == {"s": {"made": 4, "of": 4}}
    assert not (probe.kit.folder / "x.1").exists()


def test_what_cannot_be_is_refused_with_its_reason_and_the_next_taken(server, probe):
    bad, good = server.push("bad", 90), server.push("good")
    server.texts[bad] = text_of("bad").replace("experiment", "experimant")
    probe.seconds(20)
    assert server.states() == ["refused", "done"]
    assert "bad.toml:7: unknown key 'experimant'" in server.rows[bad]["reason"]
    assert {p for p, _ in probe.asked()} == {good}


def test_what_could_be_yesterday_and_cannot_today_is_refused(server, probe, tmp_path):
    probe.kit.campaigns.begin(begun(probe.kit))
    gone, other = server.push("chen-sizes"), server.push()
    probe.seconds(2, finish=False)
    assert server.states() == ["taken", "taken"]
    (tmp_path / f"{gone}.toml").unlink()  # not replaced by the package's of its name
    probe.refusal = "pushed.toml:4: the campaign has 2 paths,\nthis probe has 1"
    probe.seconds(20)
    assert server.states() == ["refused", "refused"]
    assert "No such file or directory" in server.rows[gone]["reason"]
    assert server.rows[other]["reason"] == "pushed.toml:4: the campaign has 2 paths, this probe has 1"


def test_withdrawn_while_its_triggers_wait(server, probe):
    """It is not begun again, and the next one is."""
    waits = server.push(steps=STEPS + '\n[step.trigger]\non = "hand"\n')
    probe.seconds(2)
    assert server.states() == ["running"]
    following = server.push("other")
    server.withdraw(waits)
    probe.seconds(20)
    assert server.states() == ["withdrawn", "done"]
    assert {push for push, _ in probe.asked()} == {following}
    assert progress.active(probe.kit.folder) is None


def test_withdrawn_while_the_probe_took_it(server, probe):
    """It is on its way when the server takes it back, and the word that it is taken comes late."""
    push = server.push()
    server.network = lambda method, _url: (method != "PUT", True)
    asks(probe, 2)
    server.withdraw(push)
    assert server.states() == ["withdrawn"]
    server.network = lambda _method, _url: (True, True)
    asks(probe, 5)
    assert not probe.kit.campaigns.under_way
    assert read(probe.kit.folder) == []


def test_a_network_that_comes_back_while_the_server_is_asked_is_tried_at_once(server, probe):
    push = server.push()
    requests = []

    def comes_back(method, _url):
        requests.append(method)
        if len(requests) == 1:
            probe.watch.soon()
        return len(requests) > 1, True

    server.network = comes_back
    asks(probe, 1)
    probe.seconds(1, finish=False)
    assert server.history[0] == (push, "running")


def asks(probe, count):
    for _ in range(count):
        probe.watch.soon()
        probe.seconds(1, finish=False)


def test_stopped_by_a_person_it_is_not_begun_again(server, probe):
    push = server.push()
    probe.seconds(2)
    probe.kit.campaigns.stop()
    probe.seconds(10)
    assert server.states() == ["refused"]
    assert server.rows[push]["reason"] == "stopped by a person at the probe after 2 of 4 runs"
    assert len(probe.asked()) == 2


def test_a_label_begins_one_run_by_hand_and_none_again_after_a_restart(server, probe, tmp_path):
    steps = step(repetitions=3, more='[step.trigger]\non = "hand"\nlabels = ["walk"]')
    push = server.push(steps=steps, label="walk")
    probe.seconds(5)
    assert probe.asked() == [(push, 0)]
    again = PushedTo(server, tmp_path, "boot-2", 500.0)
    again.seconds(5)
    assert again.asked() == []
    again.kit.campaigns.tell("walk")
    again.seconds(3)
    assert again.asked() == [(push, 1)]


def test_without_a_network_what_was_taken_is_carried_out(server, probe, tmp_path, caplog):
    pushes = [server.push("one"), server.push("two")]
    probe.seconds(1)
    server.online = False
    probe.watch.soon()
    probe.seconds(12)
    later = PushedTo(server, tmp_path, "boot-2", 500.0)  # days later, still without one
    later.seconds(20)
    assert sorted(probe.asked() + later.asked()) == [(p, n) for p in pushes for n in range(4)]
    assert set(server.states()) <= {"queued", "taken", "running"}
    assert caplog.text.count("waits: no path works") <= 2  # once a life
    server.online = True
    later.watch.soon()
    later.seconds(3)
    assert server.states() == ["done", "done"]


def test_a_probe_that_lost_its_queue_takes_it_from_the_server_again_and_makes_nothing_twice(server, probe, tmp_path):
    push = server.push()
    probe.seconds(3)
    (tmp_path / FILE).write_bytes(b"\x00" * 50)
    again = PushedTo(server, tmp_path, "boot-2", 500.0)
    again.seconds(20)
    assert server.states() == ["done"]
    cut = len(probe.asked()) - 1  # under way when it died: made again, the ones before are not
    assert again.asked() == [(push, n) for n in range(cut, 4)]


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


json_values = any_json()


@given(st.integers(100, 599), json_values, st.sampled_from(["format", "campaigns", "row", "text", "withdraw", "whole"]))
def test_a_hostile_server_ends_nothing(tmp_path_factory, status, value, where):
    server = PushingServer()
    probe = PushedTo(server, tmp_path_factory.mktemp("probe"))
    row = {**server.rows[server.push()]["pushed"].to_dict(), "name": value}
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
    asks(probe, 5)
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
