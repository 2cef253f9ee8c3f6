"""``tandem-server campaign export`` out of a real InfluxDB and registry, and the report of what it wrote."""

import io
import json
import shutil
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from support.synthetic_campaign import PROBE, Synthetic
from support.synthetic_folder import with_database
from support.synthetic_scenario import START_UTC_NS

pytest.importorskip("pyarrow", reason="pip install -r requirements/lock.txt")


from support.offers import offer_of
from tandem.schema.line_protocol import Point, encode_point
from tandem_server.analysis import load
from tandem_server.cli.main import main
from tandem_server.endpoint.capture import Kept
from tandem_server.registry import Registry
from tandem_server.store import PrivateInflux

pytestmark = pytest.mark.usefixtures("no_pictures")
ONLY_THE_BENCH = {"scenario", "seed", "duration_s", "cpu_seconds", "versions"}
OTHER = "probe-2"


def iso(utc_ns: int) -> str:
    return datetime.fromtimestamp(utc_ns / 1e9, UTC).isoformat()


class Server:
    """The server of a bench's campaign, its database running; a second probe made the same."""

    def __init__(self, bench: Path, influx: PrivateInflux, made: Synthetic) -> None:
        self.bench, self.influx, self.made = bench, influx, made
        self.config = bench / "server" / "exported.toml"
        self.configure(influx.port)
        self.span = ("--from", iso(START_UTC_NS), "--to", iso(START_UTC_NS + round((made.seconds + 6) * 1e9)))

    def configure(self, port: int) -> None:
        self.config.write_text(
            f'[store]\nfolder = "influxdb"\nport = {port}\n[registry]\nfile = "registry.sqlite"\n[traces]\nfolder = "traces"\n'
        )

    def write(self, probe: str, start: int = 0, end: int | None = None) -> None:
        points = self.made.source.points[start:end]
        with closing(self.influx.client()) as client:
            lines = [encode_point(Point(n, {**r.tags, "probe": probe}, dict(r.fields), r.utc_ns)) for n, _, r in points]
            assert client.write(lines) == []

    def add_probe(self) -> None:
        with Registry(self.bench / "server" / "registry.sqlite") as registry:
            registry.probes.add(OTHER)
            for one in self.made.manifests:
                run = one["id"].replace("run-", "run-2-")
                registry.runs.put(run, OTHER, {**one, "id": run, "probe": OTHER, "pair": f"2-{one['pair']}"})

    def export(self, out: Path, *more: str, name: str = "commute") -> int:
        return main(["campaign", "export", name, "--out", str(out), "--config", str(self.config), *more])


@pytest.fixture(scope="module")
def server(influx_binary, tmp_path_factory):
    made = Synthetic(seconds=110.0)
    for n, manifest in enumerate(made.manifests):
        at = {"form": "paper", "step": "pairs", "number": n, "repetition": n // 3, "arm": 0, "attempt": 1}
        manifest["campaign"] = {"name": "commute", **at, "label": "by hand", "roles": {}, "substituted": {}}
    made.captures = [(name, name.encode().ljust(len(content), b"-"), run) for name, content, run in made.captures]
    hashes = {name: sha256(content).hexdigest() for name, content, _ in made.captures}
    for file in (file for manifest in made.manifests for file in manifest["files"]):
        file["sha256"] = hashes[file["name"]]
    bench = with_database(made, tmp_path_factory.mktemp("exported") / "bench", influx_binary)
    with PrivateInflux(influx_binary, bench / "server" / "influxdb", 0) as influx:
        found = Server(bench, influx, made)
        found.add_probe()
        found.write(OTHER, 0, 500)
        yield found


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def summary(folder: Path, *more: str) -> dict:
    assert main(["report", str(folder), *more]) in (0, 1)
    return json.loads((folder / "summary.json").read_text())


def test_reported_as_the_benchs_own_folder_is(server, out, tmp_path, capsys):
    assert server.export(out, "--probe", PROBE, *server.span, name="by hand") == 0
    told, err = capsys.readouterr()
    assert err == ""
    assert f"{PROBE}: {len(server.made.manifests)} runs ({len(server.made.manifests)} complete)" in told
    own = tmp_path / "bench"
    shutil.copytree(server.bench, own, ignore=shutil.ignore_patterns("server", "truth.jsonl", "collector.json"))
    there = json.loads((own / "campaign.json").read_text())
    there["store"]["url"] = server.influx.url
    (own / "campaign.json").write_text(json.dumps(there))
    bench, found = summary(own, "--config", str(server.config)), summary(out)
    assert found | dict.fromkeys(ONLY_THE_BENCH) == bench | dict.fromkeys(ONLY_THE_BENCH)
    assert found["radio_records"] == 220
    assert len(load(out).radio) == 220


def test_again_only_what_arrived_since(server, out, capsys):

    def new() -> dict[str, int]:
        assert server.export(out, *server.span, "--json") == 0
        return json.loads(capsys.readouterr().out)["written"]

    first = new()
    assert first["manifests"] == 2 * len(server.made.manifests)
    assert new() == {"manifests": 0, "files": 0, "tables": 0, "records": 0}
    whole = sorted((out / "probe" / OTHER / "records" / "radio").iterdir())
    whole[0].write_bytes(whole[0].read_bytes()[:100])  # as a disk may leave it
    assert new()["records"] == 1
    server.write(OTHER)
    assert 0 < new()["records"] < first["records"]
    assert summary(out, "--probe", OTHER)["radio_records"] == 220
    pooled, runs = summary(out), len(server.made.manifests)
    assert pooled["radio_records"] == 440
    assert {one["probe"]: one["runs"] for one in pooled["probes"]} == {PROBE: runs, OTHER: runs}


def test_a_city_written_by_hand_outlives_the_next_export(server, out):
    assert server.export(out, *server.span) == 0
    told = json.loads((out / "campaign.json").read_text())
    told["probes"][OTHER]["city"] = "Davis"
    (out / "campaign.json").write_text(json.dumps(told))
    assert server.export(out, *server.span) == 0
    assert json.loads((out / "campaign.json").read_text()) == told
    assert {one["part"] for one in summary(out, "--by", "city")["parts"]} == {"Davis", "unknown"}


def test_broken_off_it_goes_on(server, out, capsys):
    asked = ("--probe", PROBE, *server.span)
    assert server.export(out, *asked) == 0
    next((out / "probe" / PROBE / "records" / "radio").iterdir()).unlink()
    capsys.readouterr()
    server.configure(9)
    try:
        assert server.export(out, *asked) == 3
    finally:
        server.configure(server.influx.port)
    assert "does not answer" in capsys.readouterr().err
    assert "broken off" in summary(out)["interrupted"]
    assert server.export(out, *asked) == 0
    assert summary(out)["interrupted"] is None


@pytest.mark.parametrize("kind", ["campaign.json", "ledger.json", "runs", "records/event"])
def test_a_full_disk_costs_no_file_that_is_there(server, out, capsys, kind):
    """Whichever file meets it."""
    asked = ("--probe", PROBE, *server.span)
    assert server.export(out, *asked) == 0
    whole = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    place = out / kind if kind.endswith(".json") else next((out / "probe" / PROBE / kind).iterdir())
    if kind == "ledger.json" or not kind.endswith(".json"):
        place.unlink()  # else there is nothing to write
    place.with_name(place.name + ".part").symlink_to("/dev/full")
    capsys.readouterr()
    assert server.export(out, *asked) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "No space left on device" in line
    assert place.name in line
    assert not list(out.rglob("*.part"))
    left = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert {path for path in whole if path not in left} <= {place}
    assert server.export(out, *asked) == 0
    assert json.loads((out / "campaign.json").read_text()) == json.loads(whole.pop(out / "campaign.json"))
    del whole[out / "ledger.json"]  # it tells when it was made
    assert {path: path.read_bytes() for path in whole} == whole


def test_what_is_asked_wrongly_or_into_anothers_folder_is_one_line_and_2(server, out, capsys):
    for name, more, words in (
        ("nobody", (), "nobody: no run of it has arrived; hint:"),
        ("commute", ("--probe", "probe-9"), "no such probe; hint:"),
        ("commute", ("--from", "yesterday"), "ISO 8601; hint:"),
        ("commute", ("--from", "2026-06-02", "--to", "2026-06-01"), "nothing is between"),
        ("commute", ("--to", "2001-01-01"), "no run of it has arrived"),
    ):
        assert server.export(out, *more, name=name) == 2
        err = capsys.readouterr().err
        assert (words in err, err.count("\n"), out.exists()) == (True, 1, False), err
    assert server.export(server.bench) == 2
    assert "is no export; hint:" in capsys.readouterr().err
    assert server.export(out, *server.span) == 0
    assert server.export(out) == 2


def test_captures_and_what_the_ledger_lacks(server, out, capsys):
    (name, content, run), (gone, lost, its_run), *_ = server.made.captures
    with Registry(server.bench / "server" / "registry.sqlite") as registry:
        for one, of, known in ((name, content, run), (gone, lost, its_run)):
            offer = offer_of(io.BytesIO(of), one, known, "identity")
            registry.pending_uploads.offer(PROBE, offer, 8)
            registry.pending_uploads.finish(PROBE, offer, f"{PROBE}/{one}", "identity", len(of))
    stored = server.bench / "server" / "traces" / PROBE / name
    stored.parent.mkdir(parents=True)
    stored.write_bytes(content)  # the other one is gone from the store
    assert server.export(out, "--probe", PROBE, "--traces", *server.span) == 1
    err = capsys.readouterr().err
    files = sum(len(one["files"]) for one in server.made.manifests)
    assert f"2 of {files} files had arrived at the server" in err
    assert f"{PROBE}/{gone}: {PROBE}/{gone}: it is gone" in err
    assert (out / "probe" / PROBE / name).read_bytes() == content
    assert [f.name for f in (out / "probe" / PROBE / "captures").iterdir()] == [Path(name).name]
    told = json.loads((out / "ledger.json").read_text())
    assert told["by_probe"][PROBE]["files_promised"] == files
    assert not told["complete"]
    assert main(["report", str(out)]) == 1
    assert "had arrived at the server" in capsys.readouterr().err


def test_the_servers_own_captures_go_with_the_probes_and_one_that_the_store_has_damaged_is_named(server, out, capsys):
    content, run = b"as the endpoint captured it", server.made.manifests[0]["id"]
    with Registry(server.bench / "server" / "registry.sqlite") as registry:
        kept = Kept(registry, server.bench / "server" / "traces")
        kept.draft("s1").write_bytes(content)
        name = kept.keep(kept.draft("s1"), PROBE, run, "s1", len(content), sha256(content).hexdigest())
    asked = ("--probe", PROBE, *server.span)
    there = out / "probe" / PROBE / name
    server.export(out, *asked)
    assert not there.exists()
    (stored,) = (server.bench / "server" / "traces").rglob(Path(name).name)
    stored.chmod(0o600)  # what is kept is read-only, for its owner too
    stored.write_bytes(content[:-5])
    assert server.export(out, *asked, "--traces") == 1
    assert f"{PROBE}/{name}: " in capsys.readouterr().err
    assert not there.exists()
    stored.write_bytes(content)
    server.export(out, *asked, "--traces")
    assert there.read_bytes() == content


def test_a_run_that_arrives_late_is_added(server, out, capsys):
    asked = ("--probe", OTHER, *server.span, "--json")
    server.export(out, *asked)
    late = {**server.made.manifests[0], "id": "run-late", "probe": OTHER, "pair": "late", "files": []}
    with Registry(server.bench / "server" / "registry.sqlite") as registry:
        registry.runs.put("run-late", OTHER, late)
    capsys.readouterr()
    server.export(out, *asked)
    assert json.loads(capsys.readouterr().out)["written"]["manifests"] == 1
    assert "run-late" in {run["id"] for run in summary(out, "--probe", OTHER)["runs"]}
