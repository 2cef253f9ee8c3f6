"""``tandem-server series``, with a whole server: late lines through the gateway, roll-ups from the database."""

import json
import stat
import time

import pytest
from rolled_up import expected, found

from support.serve_on_loopback import await_ready, command, end, start
from tandem_server.store import Influx

HOUR_NS = 3600 * 10**9


def radio(utc_ns, number, measurement="radio"):
    return f"{measurement},boot=b,path=a rsrp_dbm={-60.0 - number % 50},seq={number}i,monotonic_ns=5i {utc_ns}"


def config(server):
    return server.folder / "server.toml"


def late(server):
    return json.loads(command("series", "status", "--json", "--config", config(server))[1])["late"]


def test_late_lines_are_noted_before_the_answer_and_rolled_up_in_the_end(server):
    """By the loop of a server that was started anew."""
    old_ns = (time.time_ns() - 50 * HOUR_NS) // HOUR_NS * HOUR_NS
    lines = [radio(old_ns + n * 10**9, n + 1) for n in range(90)]
    status, _, answer = server.gateway("POST", "/v1/records", "\n".join(lines).encode())
    assert (status, answer["rejected"]) == (200, [])
    status, out, _ = command("series", "status", "--json", "--config", config(server))
    told = json.loads(out)
    assert (status, told["lacks"], told["late"]["rollups"]["hours"]) == (0, [], 1)
    assert told["late"]["coverage"]["hours"] == 1

    fresh = time.time_ns() - 10**10
    server.gateway("POST", "/v1/records", radio(fresh, 99).encode())
    assert late(server) == told["late"]

    wanted = expected([line.replace("boot=b", "boot=b,probe=probe-1") for line in lines], "radio", "hour")
    ((window, tags),) = wanted
    assert end(server.process) == 0
    with config(server).open("a") as toml:
        toml.write("[series]\nsettle_s = 1\n")
    server.process = start(server.folder)
    await_ready(server.process, "endpoint")
    deadline_s = time.monotonic() + 120
    with server.store() as store:
        while late(server)["rollups"]["hours"]:
            assert time.monotonic() < deadline_s, command("series", "status", "--config", config(server))[1]
            time.sleep(0.1)
        there = found(store, "radio", "hour")[window, tags]
        assert there["records"] == 90
        assert there["rsrp_dbm"] == pytest.approx(wanted[window, tags]["rsrp_dbm"])


def test_recompute_makes_a_span_again_and_tells_how_far_it_is(server):
    old_ns = (time.time_ns() - 30 * HOUR_NS) // HOUR_NS * HOUR_NS
    with server.store() as store:
        line = radio(old_ns + 7, 1).replace("boot=b", "boot=b,probe=probe-1")
        assert store.write([line]) == []  # past the gateway: nothing is noted
        begin = time.strftime("%Y-%m-%dT%H:%M", time.gmtime(old_ns // 10**9))
        options = ("--from", begin, "--measurement", "radio", "--probe", "probe-1", "--json")
        status, out, _ = command("series", "recompute", *options, "--config", config(server))
        told = [json.loads(one) for one in out.splitlines()]
        assert (status, told[-1]["done"]) == (0, True)
        assert [one["pieces_done"] for one in told[:-1]] == list(range(1, told[-1]["pieces"] + 1))
        tags = {"probe": "probe-1", "path": "a", "operator": "", "rat": ""}
        assert (old_ns, tuple(sorted(tags.items()))) in found(store, "radio", "hour")


def test_status_for_people_and_notes_that_never_stand_are_refused(server, tmp_path):
    status, out, _ = command("series", "status", "--config", config(server))
    assert (status, "policy    minute: for ever" in out, "LACKS" in out) == (0, True, False)
    (tmp_path / "server.toml").write_text("[series]\nsettle_s = 0\n")
    status, _, err = command("series", "status", "--config", tmp_path / "server.toml")
    assert (status, "[series] settle_s: 0 is below 1; hint: 1 to 3600 seconds" in err) == (2, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("recompute", "--from", "2026-05-02", "--to", "2026-05-01"), "--from is not before --to"),
        (("recompute", "--from", "yesterday"), "--from yesterday: no day and no time in ISO 8601; hint: 2026-06-01"),
        (("recompute", "--probe", "nobody"), "no probe 'nobody'; hint: tandem-server probe list"),
        (("prepare", "--admin-password-file", "missing"), "missing: No such file or directory"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(server, options, words):
    status, _, err = command("series", *options, "--config", config(server))
    assert (status in (2, 3), words in err, err.count("\n")) == (True, True, 1)


def test_preparing_an_influxdb_of_ones_own(private_influx, tmp_path):
    """Stood in for by a private one: it has the accounts that an administrator made."""
    (tmp_path / "gateway.password").write_text((private_influx.folder / "tandem.password").read_text())
    toml = tmp_path / "server.toml"
    toml.write_text(
        f'[store]\nkind = "running"\nurl = "{private_influx.url}"\nuser = "tandem"\npassword_file = "gateway.password"\n'
        'database = "own"\nminute_days = 90\n'
    )
    with private_influx.client("admin") as admin:
        try:
            status, _, err = command("series", "prepare", "--config", toml)
            assert (status, "hint: --admin-password-file FILE" in err) == (2, True)
            admin_file, reader_file = private_influx.folder / "admin.password", tmp_path / "reader"
            options = ("--admin-password-file", admin_file, "--reader-password-file", reader_file, "--config", toml)
            for _ in range(2):
                status, out, err = command("series", "prepare", *options)
                assert (status, err) == (0, "")
            assert stat.S_IMODE(reader_file.stat().st_mode) == 0o600
            admin.query('GRANT ALL ON "own" TO tandem')
            status, out, _ = command("series", "status", "--config", toml)
            assert (status, "policy    minute: 2160h0m0s" in out) == (0, True)
            with Influx(private_influx.url, "own", "reader", reader_file.read_text().strip()) as reader:
                assert reader.query('SELECT * FROM "boards"."resolution"')
        finally:
            admin.query('DROP DATABASE "own"')
            command("series", "prepare", "--admin-password-file", private_influx.folder / "admin.password",
                    "--reader-password-file", private_influx.folder / "reader.password", "--config", toml)  # fmt: skip
            admin.query('DROP DATABASE "own"')
            admin.query('GRANT READ ON "tandem" TO reader')
