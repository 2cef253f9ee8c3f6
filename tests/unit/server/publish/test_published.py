"""``tandem-server campaign publish`` of an exported folder: what is in the package, what is not, what stops it."""

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pip install -r requirements/lock.txt")

import pyarrow.parquet as pq

from support.sample_export import (
    ARGUMENT,
    HERS,
    HOME,
    KIT,
    RADIUS_M,
    SERVER,
    START_UTC_NS,
    export,
    pcap,
    tcp4,
    write_records,
)
from support.synthetic_campaign import Synthetic
from support.synthetic_folder import with_database
from tandem.schema.metrics import MEASUREMENTS
from tandem_server.analysis import load
from tandem_server.analysis.record_files import TIME
from tandem_server.cli.main import main
from tandem_server.publish import package
from tandem_server.publish.homes import distance_m

AT_HOME = (START_UTC_NS + 60 * 10**9, START_UTC_NS + 100 * 10**9)


@pytest.fixture(autouse=True)
def _key(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def folder(tmp_path):
    return export(tmp_path / "campaign")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def publish(folder, out, *more, licence="CC-BY-4.0"):
    named = ("--licence", licence) if licence else ()
    return main(["campaign", "publish", str(folder), "--out", str(out), *named, *more])


def files(out):
    return {path.relative_to(out).as_posix(): path for path in sorted(out.rglob("*")) if path.is_file()}


def rows(out, measurement):
    return [
        row
        for path in sorted(out.glob(f"probe/*/records/{measurement}/*.parquet"))
        for row in pq.read_table(path).to_pylist()
    ]


def manifests(out):
    return [json.loads(path.read_text()) for path in sorted(out.glob("probe/*/runs/*.json"))]


def at_home(run):
    return run["started_utc_ns"] <= AT_HOME[1] and run["ended_utc_ns"] >= AT_HOME[0]


def test_a_package_is_whole_and_reads_as_the_campaign_does(folder, out, tmp_path, capsys):
    (folder / "probe" / KIT / "token").write_text("secret")
    (folder / "probe" / KIT / "config.toml").write_text(f'[server]\ngateway = "https://{SERVER}:8443"\n')
    assert publish(folder, out, "--no-home", "--creator", "Doe, Jane", "--title", "A commute", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    there = files(out)
    assert told["files"] == len(there)
    assert told["bytes"] == sum(path.stat().st_size for path in there.values())
    assert told["packets"] == len(list(out.rglob("*.pcap")))
    assert (told["probes"], told["runs"], told["left_out"]) == (1, len(manifests(folder)), 0)
    sums = dict(reversed(line.split("  ", 1)) for line in (out / "SHA256SUMS").read_text().splitlines())
    assert sums == {name: sha256(path.read_bytes()).hexdigest() for name, path in there.items() if name != "SHA256SUMS"}
    assert not any(word in name for name in there for word in ("token", "config.toml", KIT))
    assert not list(tmp_path.glob("*.part"))
    assert len(rows(out, "radio")) == len(rows(folder, "radio"))
    for one in manifests(out):
        for file in one["files"]:
            content = (out / "probe/probe-1" / file["name"]).read_bytes()
            assert (file["bytes"], file["sha256"]) == (len(content), sha256(content).hexdigest())
            assert file["packets"] == 1
    found, own = load(out), load(folder)
    assert len(found.radio) == len(own.radio)
    goodputs = [one.tables["download"]["goodput_bit_per_s"].tolist() for one in (found, own)]
    assert goodputs[0] == goodputs[1]
    assert main(["report", str(out)]) in (0, 1)


def test_no_name_and_no_address_of_anybody_is_in_any_file(folder, out):
    assert publish(folder, out, "--no-home") == 0
    for path in files(out).values():
        content = path.read_bytes()
        for word in (KIT.encode(), SERVER.encode(), HERS.encode(), bytes([9, 9, 9, 9]), b"secret"):
            assert word not in content, path
        if path.suffix == ".parquet":
            assert not {KIT, SERVER} & {
                value for row in pq.read_table(path).to_pylist() for value in row.values() if isinstance(value, str)
            }
    further = [one["environment"]["further"] for one in manifests(out)]
    assert len({one["public_addresses"]["a"] for one in further}) == 1
    assert all(one["why"] == f"probe-1 asked server.invalid over {one['public_addresses']['a']}" for one in further)


def test_nothing_of_a_home_is_left_and_the_rest_is(folder, out, capsys):
    assert publish(folder, out, "--home", ARGUMENT, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    for measurement in MEASUREMENTS:
        for row in rows(out, measurement):
            assert not AT_HOME[0] <= row[TIME] <= AT_HOME[1]
    left = rows(out, "position")
    assert 0 < len(left) < len(rows(folder, "position"))
    assert all(float(distance_m(row["latitude_deg"], row["longitude_deg"], *HOME)) > RADIUS_M for row in left)
    kept = {one["id"] for one in manifests(out)}
    overlapping = {one["id"] for one in manifests(folder) if at_home(one)}
    assert (bool(overlapping), bool(kept), kept & overlapping) == (True, True, set())
    assert told["left_out"] == len(manifests(folder)) - len(kept)
    assert told["hours_cut"] * 3600 >= 40
    assert not [name for name in files(out) if any(run in name for run in overlapping)]
    cells = {row["eci"] for row in rows(out, "radio")}
    for row in rows(out, "event"):
        assert {row["from_eci"], row["to_eci"]} <= cells | {None}
    for path in files(out).values():
        assert str(HOME[0]).encode() not in path.read_bytes()
    published = json.loads((out / "campaign.json").read_text())["published"]
    assert published == {"places": "cut", "runs_left_out": told["left_out"]}
    load(out)


def test_a_home_that_nobody_came_near_is_noted(folder, out, capsys):
    exchanged = f"-{HOME[1]},{HOME[0]},{RADIUS_M}"
    assert publish(folder, out, "--home", ARGUMENT, f"--home={exchanged}", "--json") == 0
    told, err = capsys.readouterr()
    assert json.loads(told)["far_homes"] == [2]
    assert "note: home 2: no probe was within 20 km of it; hint: latitude comes first" in err
    assert exchanged not in err


def test_homes_out_of_a_probes_configuration(folder, out, tmp_path):
    file = tmp_path / "config.toml"
    file.write_text(
        f"[[position.home_zone]]\nlatitude_deg = {HOME[0]}\nlongitude_deg = {HOME[1]}\nradius_m = {RADIUS_M}\n"
    )
    assert publish(folder, out, "--homes", str(file)) == 0
    assert publish(folder, tmp_path / "told", "--home", ARGUMENT) == 0
    assert rows(out, "position") == rows(tmp_path / "told", "position")


def test_without_places_no_cell_and_no_position_is_told(tmp_path, out):
    folder = export(tmp_path / "campaign", positions=False)
    there = json.loads((folder / "campaign.json").read_text())
    there["probes"][KIT]["city"] = "Wolfratshausen"
    (folder / "campaign.json").write_text(json.dumps(there))
    first = next((folder / "probe" / KIT / "runs").iterdir())
    ran = json.loads(first.read_text())
    ran["environment"]["city"] = "Wolfratshausen"
    first.write_text(json.dumps(ran))
    assert publish(folder, out, "--without-places") == 0
    assert not [name for name, path in files(out).items() if b"Wolfratshausen" in path.read_bytes()]
    assert len(load(out).runs) == len(manifests(folder))
    assert rows(out, "position") == []
    before, after = ({row["eci"] for row in rows(place, "radio")} - {None} for place in (folder, out))
    assert len(before) == len(after)
    assert not before & after
    changes = [(row["from_eci"], row["to_eci"]) for row in rows(out, "event") if row["kind"] == "handover"]
    assert changes
    assert all({a, b} <= after for a, b in changes)
    assert {one["modems"]["a"]["at_start"]["pci"] for one in manifests(out)} == {None}


def test_identities_stop_it_with_file_line_and_column(folder, out, tmp_path, capsys):
    path = next((folder / "probe" / KIT / "runs").iterdir())
    told = json.loads(path.read_text())
    for change, place in (
        ({"imsi": 5, "note": "asked +49 170 1234567"}, "4:17: telephone number"),
        ({"subscriber": 262011234567890}, "3:16: number as long as an IMEI or IMSI"),
    ):
        path.write_text(json.dumps({"format": told["format"], **change, **told}, indent=1))
        assert publish(folder, out, "--no-home") == 1
        err = capsys.readouterr().err
        assert f"probe/kit-anna/runs/{path.name}:{place}" in err
        assert "nothing is published: the folder shows identities (above); hint:" in err
        assert not list(tmp_path.glob("out*"))
        assert publish(folder, out, "--no-home", "--json") == 1
        assert any(one.endswith(place) for one in json.loads(capsys.readouterr().out)["identities"])


def test_identities_in_records_and_what_the_rewriting_would_miss_stop_it_too(
    folder, out, tmp_path, capsys, monkeypatch
):
    with monkeypatch.context() as patched:
        patched.setattr(package.Rewriter, "address", lambda _self, address: address)
        assert publish(folder, out, "--no-home") == 1
    err = capsys.readouterr().err
    assert "packet 1: public address" in err or ".json:" in err
    assert not list(tmp_path.glob("out*"))
    events = rows(folder, "event")
    write_records(folder / "probe" / KIT, "event", [*events, {**events[0], "detail": "sim 490154203237518"}])
    assert publish(folder, out, "--no-home") == 1
    assert f"{KIT}/records/event/" in (err := capsys.readouterr().err)
    assert f"row {len(events) + 1}, detail: IMEI" in err


def test_what_is_asked_wrongly_and_a_folder_that_cannot_be_published_are_one_line_and_2(tmp_path, capsys):
    folder, empty = export(tmp_path / "campaign", positions=False), tmp_path / "empty"
    for one in (empty, tmp_path / "there"):
        one.mkdir()

    def refused(words, *more, licence="CC0-1.0", place=folder, out="out"):
        assert publish(place, tmp_path / out, *more, licence=licence) == 2
        err = capsys.readouterr().err
        assert (words in err, err.count("\n")) == (True, 1), err
        assert not list(tmp_path.glob("out*")) + list(tmp_path.glob("*.part"))

    refused("hint: --licence", "--no-home", licence=None)
    refused("not among the licences known here; hint: one of", "--no-home", licence="mine")
    refused("of homes nothing is said; hint: --home")
    refused("homes are named and not named; hint:", "--no-home", "--home", ARGUMENT)
    refused("no name with an ORCID; hint:", "--no-home", "--creator", "Doe <doe>")
    refused("--home: no LAT,LON,RADIUS_M; hint:", "--home", "here")
    refused("no campaign.json in it; hint:", "--no-home", place=empty)
    refused("is there already; hint:", "--no-home", out="there")
    refused("no position was recorded", "--home", ARGUMENT)
    (tmp_path / "zones.toml").write_text("[[position.home_zone]]\nlatitude_deg = 1\n")
    refused("a home_zone has no longitude_deg; hint:", "--homes", str(tmp_path / "zones.toml"))
    run, campaign = next((folder / "probe").glob("*/runs/*.json")), folder / "campaign.json"
    told, whole = run.read_text(), campaign.read_text()
    run.write_text(told.replace("tandem-run/1", "tandem-run/9"))
    refused("format 'tandem-run/9': where it may name somebody is known of 'tandem-run/1' only; hint:", "--no-home")
    run.write_text(told)
    campaign.write_text(whole.replace("campaign/1", "campaign/9"))
    refused("format 'tandem-campaign/9'; hint:", "--no-home")
    campaign.write_text(whole[:60])
    refused("campaign.json is cut or no JSON", "--no-home")


KILLED = """
import os, sys
from tandem_server.publish import package
from tandem_server.cli.main import main
put = package.captures.rewrite
def die(source, to, address):
    done = put(source, to, address)
    if len(list(to_folder.rglob("*.pcap"))) >= 2:
        os.kill(os.getpid(), 9)
    return done
from pathlib import Path
to_folder = Path(sys.argv[1] + ".part")
package.captures.rewrite = die
main(sys.argv[2:])
"""


def test_killed_it_leaves_no_package_and_goes_on(folder, out, tmp_path):
    words = ["campaign", "publish", str(folder), "--out", str(out), "--licence", "CC0-1.0", "--no-home"]
    ended = subprocess.run([sys.executable, "-c", KILLED, str(out), *words], env={**os.environ}, check=False)
    assert ended.returncode == -9
    assert not out.exists()
    draft = tmp_path / "out.part"
    assert not (draft / "SHA256SUMS").exists()
    whole = {name: path.stat().st_ino for name, path in files(draft).items() if name.endswith((".parquet", ".pcap"))}
    assert any(name.endswith(".pcap") for name in whole)
    assert main(words) == 0
    assert not draft.exists()
    assert whole.items() <= {name: path.stat().st_ino for name, path in files(out).items()}.items()
    assert publish(folder, tmp_path / "at-once", "--no-home", licence="CC0-1.0") == 0
    assert set(files(tmp_path / "at-once")) == set(files(out))
    assert all(path.read_bytes() == (out / name).read_bytes() for name, path in files(tmp_path / "at-once").items())


def test_a_full_disk_and_a_damaged_record_file_are_one_line_and_3(folder, out, tmp_path, capsys, monkeypatch):
    write = package.captures.rewrite

    def full(source, to, address):
        write(source, to, address)
        with Path("/dev/full").open("wb", buffering=0) as file:
            file.write(b"x")

    with monkeypatch.context() as patched:
        patched.setattr(package.captures, "rewrite", full)
        assert publish(folder, tmp_path / "full", "--no-home") == 3
    assert "No space left on device" in capsys.readouterr().err
    assert not (tmp_path / "full").exists()
    next((folder / "probe" / KIT / "records" / "radio").iterdir()).write_bytes(b"PAR1")
    assert publish(folder, out, "--no-home") == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert ("cannot be read:" in line, "hint:" in line, out.exists()) == (True, True, False)


def test_a_folder_of_the_bench_goes_with_the_records_of_its_database(influx_binary, out, tmp_path, capsys):
    made = Synthetic(seconds=40.0)
    folder = with_database(made, tmp_path / "bench", influx_binary)
    assert publish(folder, out, "--no-home", "--without-captures") == 0
    for name in {name for name, _, _ in made.source.points}:
        own = [{TIME: row.utc_ns, **row.tags, **row.fields} for one, _, row in made.source.points if one == name]
        found = [{key: value for key, value in row.items() if value is not None} for row in rows(out, name)]
        assert len(found) == len(own)
        assert {tuple(sorted(row.items())) for row in found} == {tuple(sorted(row.items())) for row in own}
    assert {"truth.jsonl", "probe/probe-1/collector.json"} <= set(files(out))
    assert not any(name.startswith("server") for name in files(out))
    (folder / "server" / "influxdb" / "tandem.password").unlink()
    capsys.readouterr()
    assert publish(folder, tmp_path / "again", "--no-home") == 2
    assert "no records to read; hint:" in capsys.readouterr().err


def test_long_results_go_with_their_run_line_by_line(folder, out, tmp_path):
    own = folder / "probe" / KIT
    path = next((own / "runs").iterdir())
    name = f"results/{path.stem}-rows.jsonl"
    (own / "results").mkdir()
    (own / name).write_text(f'0\nnull\n["{HERS}"]\n')
    files_of = [{"name": name, "bytes": 1, "sha256": "", "packets": None}]
    path.write_text(json.dumps({**json.loads(path.read_text()), "files": files_of}))
    assert publish(folder, out, "--no-home") == 0
    zero, none, (address,) = map(json.loads, (out / "probe/probe-1" / name).read_text().splitlines())
    assert (zero, none) == (0, None)
    assert address.startswith(("24", "25"))
    (own / name).write_text('{"a": 1}\n{"a": \n')
    assert publish(folder, tmp_path / "again", "--no-home") == 2


def test_captures_of_the_server_go_with_their_run(folder, out, tmp_path):
    own = folder / "probe" / KIT
    name = "captures/server/run-1-s.pcap"
    (own / name).parent.mkdir()
    (own / name).write_bytes(pcap([tcp4(HERS, "8.8.8.8", b"secret")]))
    for path in (own / "runs").iterdir():
        told = json.loads(path.read_text())
        told["server_captures"] = [{"name": name, "bytes": 1, "packets": 9}, {"name": None, "why": "no room"}]
        path.write_text(json.dumps(told))
    assert any(map(at_home, manifests(folder)))
    assert publish(folder, out, "--no-home") == 0
    content = (out / "probe/probe-1" / name).read_bytes()
    assert b"secret" not in content
    kept = {"name": name, "bytes": len(content), "packets": 1, "sha256": sha256(content).hexdigest()}
    assert all(one["server_captures"] == [kept] for one in manifests(out))
    assert publish(folder, tmp_path / "cut", "--home", ARGUMENT) == 0
    assert not (tmp_path / "cut" / "probe/probe-1" / name).exists()


def test_without_captures_no_run_promises_one_and_a_draft_of_something_else_is_made_anew(folder, out, tmp_path):
    (tmp_path / "out.part/probe").mkdir(parents=True)
    (tmp_path / "out.part/probe/stray.json").write_text("{}")
    assert publish(folder, out, "--no-home", "--without-captures") == 0
    assert not [*out.rglob("*.pcap"), *out.rglob("stray.json")]
    assert all(one["files"] == [] for one in manifests(out))
