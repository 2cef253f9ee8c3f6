"""A probe's queue over HTTPS, and the commands that fill it."""

import json
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serve_on_loopback import command

from tandem import campaigns
from tandem.schema.campaign_queue import FORMAT, read_queue, read_text
from tandem_server.cli import campaign_source

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
    """The server without what an earlier test queued."""
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
    (row,) = pushed(kit, own, "--probe", "probe-1", "--path", "wifi=wlan", "--label", "still", "--priority", "70")
    status, _, queue = kit.gateway("GET", "/v1/campaigns")
    (one,) = read_queue(queue)
    assert (status, one.id, one.priority, one.paths, one.label) == (200, row["id"], 70, {"wifi": "wlan"}, "still")
    status, _, answer = kit.gateway("GET", f"/v1/campaigns/{one.id}")
    assert (status, read_text(answer)) == (200, OWN)
    for report, reason in (("taken", None), ("running", None), ("running", None), ("done", None), ("running", None)):
        body = json.dumps({"state": report, "reason": reason, "steps": {"s": {"made": 1, "of": 1}}})
        status, _, answer = kit.gateway("PUT", f"/v1/campaigns/{one.id}/state", body)
        assert (status, answer["ok"], answer["withdraw"]) == (200, True, False)
    assert answer["state"] == "done"
    assert state_of(kit, one.id) == ("done", None)
    assert read_queue(kit.gateway("GET", "/v1/campaigns")[2]) == []
    assert "s: 1 of 1 runs" in campaign(kit, "status", one.id)[1]


def test_a_refusal_is_seen_with_its_reason(kit, own):
    (row,) = pushed(kit, own, "--all")
    body = json.dumps({"state": "refused", "reason": "own.toml:4: the campaign has 2 paths, this probe has 1"})
    assert kit.gateway("PUT", f"/v1/campaigns/{row['id']}/state", body)[0] == 200
    assert state_of(kit, row["id"]) == ("refused", "own.toml:4: the campaign has 2 paths, this probe has 1")


def test_withdrawn_before_and_after_the_probe_has_it(kit, own):
    one, other = pushed(kit, own, "--all")[0]["id"], pushed(kit, own, "--all")[0]["id"]
    kit.gateway("PUT", f"/v1/campaigns/{other}/state", '{"state": "running"}')
    status, out, _ = campaign(kit, "withdraw", "own")
    assert status == 0
    assert "withdrawn own" in out
    assert "own, to be withdrawn" in out
    (left,) = read_queue(kit.gateway("GET", "/v1/campaigns")[2])
    assert (left.id, left.withdraw) == (other, True)
    assert kit.gateway("PUT", f"/v1/campaigns/{one}/state", '{"state": "taken"}')[2] == {
        "ok": True,
        "state": "withdrawn",
        "withdraw": True,
    }
    kit.gateway("PUT", f"/v1/campaigns/{other}/state", '{"state": "withdrawn"}')
    assert campaign(kit, "list")[1] == ""
    assert "is settled already" in campaign(kit, "withdraw", other)[2]


def test_another_probes_campaigns_are_nobody_elses(kit, own):
    (row,) = pushed(kit, own, "--probe", "probe-1")
    token = command("probe", "add", "probe-7", "--config", kit.folder / "server.toml")[1].strip()
    assert kit.gateway("GET", "/v1/campaigns", token=token)[2] == {"format": FORMAT, "campaigns": []}
    assert kit.gateway("GET", f"/v1/campaigns/{row['id']}", token=token)[0] == 404
    assert kit.gateway("PUT", f"/v1/campaigns/{row['id']}/state", '{"state": "done"}', token=token)[0] == 404
    assert kit.gateway("GET", "/v1/campaigns", token=token[:-1])[0] == 401
    command("probe", "revoke", "probe-7", "--config", kit.folder / "server.toml")
    assert "its token is revoked; mend" in campaign(kit, "push", own, "--probe", "probe-7")[2]


def test_a_report_that_is_none_is_refused(kit, own):
    (row,) = pushed(kit, own, "--all")
    for body in ("", "[]", "{", '{"state": "queued"}', '{"state": NaN}', "[" * 60_000, "\u00ff" * 70_000):
        status, _, answer = kit.gateway("PUT", f"/v1/campaigns/{row['id']}/state", body.encode())
        assert (status, list(answer)) == (413 if len(body) > 65_536 else 400, ["error"]), body[:30]
    assert state_of(kit, row["id"]) == ("queued", None)


@given(st.text(min_size=1, max_size=80).filter(lambda text: "/" not in text))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_id_opens_anything(server, text):
    place = "/v1/campaigns/" + quote(text.encode("utf-8", "replace"), safe="")
    assert server.gateway("GET", place)[0] in (200, 307, 404)


MISTAKES = [
    (("own.toml", "--probe", "nobody"), "--probe nobody: there is no such probe; mend: tandem-server probe list"),
    (("own.toml", "--all", "--path", "lte=x"), "own.toml:4: 'lte' is no role of the campaign; mend: one of wifi"),
    (("own.toml", "--all", "--path", "wifi"), "--path wifi: no ROLE=NAME; mend"),
    (("own.toml", "--all", "--path", "wifi=x", "--path", "cellular=x"), "is named twice"),
    (
        ("own.toml", "--all", "--label", "flying"),
        "own.toml:8: no step takes the label 'flying'; mend: one of still",
    ),
    (("own.toml", "--all", "--priority", "101"), "--priority 101; mend: 0 to 100"),
    (("broken.toml", "--all"), "broken.toml:7: unknown key 'experimant' in [[step]]; mend"),
    (("none.toml", "--all"), "none.toml: No such file or directory; mend"),
    (
        ("unheard-of", "--all"),
        "unheard-of: there is no campaign of that name; mend: a file's path, or one of adarsh",
    ),
]


def test_a_mistake_is_one_line_with_its_mend(kit, own, monkeypatch):
    (own.parent / "broken.toml").write_text(OWN.replace("experiment =", "experimant ="))
    monkeypatch.chdir(own.parent)
    for args, reason in MISTAKES:
        status, out, err = campaign(kit, "push", *args)
        assert (status, out, err.count("\n"), reason in err) == (2, "", 1, True), (args, err)


def test_the_papers_campaigns_are_found_by_name(kit):
    assert campaign_source.shipped() == campaigns.names()
    (row,) = pushed(kit, "chen-sizes", "--all", "--short", "--allow-substitutes")
    assert read_text(kit.gateway("GET", f"/v1/campaigns/{row['id']}")[2]) == campaigns.text("chen-sizes")
    assert (row["name"], row["short"], row["allow_substitutes"]) == ("chen-sizes", True, True)
    assert "(short form)" in campaign(kit, "list")[1]
    campaign(kit, "withdraw", "chen-sizes")


def test_where_only_the_schema_is_installed_the_probe_finds_the_name(kit, monkeypatch):
    monkeypatch.setattr(campaign_source, "shipped", list)
    (row,) = pushed(kit, "its-own", "--all", "--path", "any=wlan")
    assert kit.gateway("GET", f"/v1/campaigns/{row['id']}")[2] == {"format": FORMAT, "id": row["id"], "text": None}
    campaign(kit, "withdraw", "its-own")
