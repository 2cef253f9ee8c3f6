"""A probe's queue over HTTPS, and the commands that fill it."""

import json
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.serve_on_loopback import command
from tandem import campaigns
from tandem.schema.campaign_queue import FORMAT, read_queue, read_text
from tandem_dashboards.boards import campaign_board
from tandem_server.cli import campaign as campaign_commands

OWN = """\
format = "tandem-campaign-file/1"
name = "own"
title = "t"
roles = ["wifi", "cellular"]
[[step]]
name = "s"
experiment = "download"
[step.trigger]
on = "hand"
labels = ["still"]
[step.parameters]
kind = "mptcp"
bytes = 1000
"""


@pytest.fixture
def own(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(OWN)
    return file


@pytest.fixture
def kit(server):
    campaign(server, "withdraw", "own")
    return server


def campaign(server, *args):
    return command("campaign", *args, "--config", server.folder / "server.toml")


def pushed(server, *args):
    status, out, err = campaign(server, "push", *args, "--json")
    assert status == 0, err
    return json.loads(out)


def state_of(server, one):
    (row,) = json.loads(campaign(server, "status", one, "--json")[1])
    return row["state"], row["reason"]


def test_pushed_asked_for_told_and_done(kit, own):
    how = ("--path", "wifi=wlan", "--label", "still", "--priority", "70", "--timezone", "Asia/Tokyo")
    (row,) = pushed(kit, own, "--probes", "probe-1", *how)
    status, _, queue = kit.gateway("GET", "/v1/campaigns")
    (one,) = read_queue(queue)
    assert (status, one.id, one.priority, one.paths, one.label) == (200, row["id"], 70, {"wifi": "wlan"}, "still")
    assert one.timezone == row["timezone"] == "Asia/Tokyo"
    assert "own, local time of Asia/Tokyo\n" in campaign(kit, "list")[1]
    status, _, answer = kit.gateway("GET", f"/v1/campaigns/{one.id}")
    assert (status, read_text(answer)) == (200, OWN)
    for report, reason in (("taken", None), ("running", None), ("running", None), ("done", None), ("running", None)):
        body = json.dumps({"state": report, "reason": reason, "steps": {"s": {"made": 1, "of": 1}}})
        status, _, answer = kit.gateway("PUT", f"/v1/campaigns/{one.id}/state", body)
        assert (status, answer["ok"], answer["withdraw"]) == (200, True, False)
    assert answer["state"] == "done"
    assert state_of(kit, one.id) == ("done", None)
    assert read_queue(kit.gateway("GET", "/v1/campaigns")[2]) == []
    title, head, told = campaign(kit, "status", one.id)[1].splitlines()
    assert (title, head.split()[:2]) == ("own, 1 of 1 done", ["probe", "state"])
    assert told.split() == ["probe-1", "done", "1", "1", "0", "-", one.id]


def test_a_report_that_is_none_is_refused_and_a_refusal_is_seen_with_its_reason(kit, own):
    (row,) = pushed(kit, own, "--probes", "all")
    place = f"/v1/campaigns/{row['id']}/state"
    for body in ("", "[]", "{", '{"state": "queued"}', '{"state": NaN}', "[" * 60_000, "\u00ff" * 70_000):
        status, _, answer = kit.gateway("PUT", place, body.encode())
        assert (status, list(answer)) == (413 if len(body) > 65_536 else 400, ["error"]), body[:30]
    assert state_of(kit, row["id"]) == ("queued", None)
    reason = "own.toml:4: the campaign has 2 paths, this probe has 1"
    assert kit.gateway("PUT", place, json.dumps({"state": "refused", "reason": reason}))[0] == 200
    assert state_of(kit, row["id"]) == ("refused", reason)


def test_withdrawn_before_and_after_the_probe_has_it(kit, own):
    one, other = pushed(kit, own, "--probes", "all")[0]["id"], pushed(kit, own, "--probes", "all")[0]["id"]
    kit.gateway("PUT", f"/v1/campaigns/{other}/state", '{"state": "running"}')
    status, out, _ = campaign(kit, "withdraw", "own")
    assert status == 0
    assert "withdrawn own" in out
    assert "own, to be withdrawn" in out
    (left,) = read_queue(kit.gateway("GET", "/v1/campaigns")[2])
    assert (left.id, left.withdraw) == (other, True)
    answer = kit.gateway("PUT", f"/v1/campaigns/{one}/state", '{"state": "taken"}')[2]
    assert answer == {"ok": True, "state": "withdrawn", "withdraw": True}
    kit.gateway("PUT", f"/v1/campaigns/{other}/state", '{"state": "withdrawn"}')
    assert campaign(kit, "list")[1] == ""
    assert "is settled already" in campaign(kit, "withdraw", other)[2]


def test_another_probes_campaigns_are_nobody_elses(kit, own):
    (row,) = pushed(kit, own, "--probes", "probe-1")
    token = command("probe", "add", "probe-7", "--config", kit.folder / "server.toml")[1].strip()
    assert kit.gateway("GET", "/v1/campaigns", token=token)[2] == {"format": FORMAT, "campaigns": []}
    assert kit.gateway("GET", f"/v1/campaigns/{row['id']}", token=token)[0] == 404
    assert kit.gateway("PUT", f"/v1/campaigns/{row['id']}/state", '{"state": "done"}', token=token)[0] == 404
    assert kit.gateway("GET", "/v1/campaigns", token=token[:-1])[0] == 401
    command("probe", "revoke", "probe-7", "--config", kit.folder / "server.toml")
    assert "its token is revoked; hint" in campaign(kit, "push", own, "--probes", "probe-7")[2]


@given(st.text(min_size=1, max_size=80).filter(lambda text: "/" not in text))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_id_opens_anything(server, text):
    place = "/v1/campaigns/" + quote(text.encode("utf-8", "replace"), safe="")
    assert server.gateway("GET", place)[0] in (200, 307, 404)


MISTAKES = [
    ("own.toml --path lte=x", "own.toml:4: 'lte' is no role of the campaign; hint: one of wifi"),
    ("own.toml --path wifi", "--path wifi: no ROLE=NAME; hint"),
    ("own.toml --path wifi=x --path cellular=x", "is named twice"),
    ("own.toml --label flying", "own.toml:8: no step takes the label 'flying'; hint: one of still"),
    ("own.toml --priority 101", "--priority 101; hint: 0 to 100"),
    ("own.toml --timezone Tokio", "timezone 'Tokio': no such zone; hint: write Asia/Tokyo"),
    ("zone.toml", "zone.toml:3: timezone 'UTZ': no such zone; hint"),
    ("broken.toml", "broken.toml:7: unknown key 'experimant' in [[step]]; hint"),
    ("own.toml --form pilat", "own.toml:1: there is no form 'pilat'; hint: one of paper\n"),
    ("none.toml", "none.toml: No such file or directory; hint"),
    ("unheard-of", "unheard-of: there is no campaign of that name; hint: a file's path, or one of adarsh"),
    ("own.toml --probes nobody", "--probes nobody: there is no such probe; hint: tandem-server probe list"),
]


def test_a_mistake_is_one_line_with_its_hint(kit, own, monkeypatch):
    (own.parent / "broken.toml").write_text(OWN.replace("experiment =", "experimant ="))
    (own.parent / "zone.toml").write_text(OWN.replace("title =", 'timezone = "UTZ"\ntitle ='))
    monkeypatch.chdir(own.parent)
    for line, reason in MISTAKES:
        args = line.split() if "--probes" in line else [*line.split(), "--probes", "all"]
        status, out, err = campaign(kit, "push", *args)
        assert (status, out, err.count("\n"), reason in err) == (2, "", 1, True), (args, err)


def test_the_papers_campaigns_are_found_by_name_and_others_by_the_probe(kit, monkeypatch):
    assert campaign_commands.shipped() == campaigns.names()
    (row,) = pushed(kit, "chen-sizes", "--probes", "all", "--form", "pilot")
    assert read_text(kit.gateway("GET", f"/v1/campaigns/{row['id']}")[2]) == campaigns.text("chen-sizes")
    assert (row["name"], row["form"]) == ("chen-sizes", "pilot")
    assert "(pilot form)" in campaign(kit, "list")[1]
    campaign(kit, "withdraw", "chen-sizes")
    monkeypatch.setattr(campaign_commands, "shipped", list)
    (row,) = pushed(kit, "its-own", "--probes", "all", "--path", "any=wlan")
    assert kit.gateway("GET", f"/v1/campaigns/{row['id']}")[2] == {"format": FORMAT, "id": row["id"], "text": None}
    campaign(kit, "withdraw", "its-own")


def test_push_says_where_progress_is_seen_and_status_how_far_it_is(kit):
    status, out, err = campaign(kit, "push", "mohan-dual-lte", "--form", "pilot", "--probes", "all")
    assert (status, err) == (0, "")
    queued, progress, board = out.splitlines()
    assert queued.endswith("queued    mohan-dual-lte (pilot form)")
    assert progress == "progress: tandem-server campaign status mohan-dual-lte"
    place = f"{campaign_board().title}, /d/{campaign_board().uid}"
    assert board == f"board: {place}?var-campaign=mohan-dual-lte of this server's Grafana"
    (one,) = read_queue(kit.gateway("GET", "/v1/campaigns")[2])
    told = {"wild": {"made": 30, "of": 120}, "ways": {"made": 2, "of": 13}}
    body = json.dumps({"state": "running", "steps": told, "runs": {"ok": 30, "failed": 2}})
    assert kit.gateway("PUT", f"/v1/campaigns/{one.id}/state", body)[0] == 200
    title, _, told = campaign(kit, "status", "mohan-dual-lte")[1].splitlines()
    assert title == "mohan-dual-lte (pilot form), 0 of 1 done"
    assert told.split()[:5] == ["probe-1", "running", "32", "133", "2"]
    campaign(kit, "withdraw", "mohan-dual-lte")


def test_no_probe_is_enrolled(kit, own, tmp_path):
    (tmp_path / "server.toml").write_text((kit.folder / "server.toml").read_text())
    status, out, err = command("campaign", "push", own, "--probes", "all", "--config", tmp_path / "server.toml")
    assert (status, out) == (2, "")
    assert err == "tandem-server: --probes all: no probe is enrolled; hint: tandem-server probe add NAME\n"
