"""``tandem-server analyse DIR/probe --out DIR/traces``, then ``report DIR``: the captures' bins reach the figures."""

import json
import shutil

import pytest

from support.synthetic_campaign import Synthetic
from support.synthetic_folder import write
from tandem_server.analysis.radio_packets import COLUMNS
from tandem_server.cli.main import main

pytest.importorskip("pyarrow", reason="no pyarrow; pip install -r requirements/lock.txt")
from support import native  # noqa: F401  (skips where the native pass is not built)
from support.capture_scenes import plain_download
from support.captures import pcap
from support.exported_kits import OPERATORS, kit, write_export

pytestmark = pytest.mark.usefixtures("no_pictures")
CAPTURE = pcap(plain_download().packets)
LACKING = "bins of the packet captures"


def test_bins_of_the_captures_reach_the_figures(tmp_path):
    made = Synthetic(seconds=110.0)
    for manifest in made.manifests:
        manifest["result"]["bytes"] = 5000  # no more than the captures hold
    folder = write(made, tmp_path / "campaign")
    assert main(["report", str(folder)]) == 1  # no database
    assert LACKING in (folder / "report.html").read_text()
    for capture in (folder / "probe").rglob("*.pcap"):
        capture.write_bytes(CAPTURE)
    assert main(["analyse", str(folder / "probe"), "--out", str(folder / "traces"), "--workers", "1"]) == 0
    assert main(["report", str(folder)]) == 1
    page = (folder / "report.html").read_text()
    assert LACKING not in page
    assert "Runs with captures: " in page
    assert not list((folder / "tables").glob("*.tmp"))
    assert (folder / "tables" / "radio_packets.parquet").is_file()
    told = (folder / "tables" / "radio_packets.csv").read_text().splitlines()[0].split(",")
    assert told == [name for name, *_ in COLUMNS]
    assert json.loads((folder / "summary.json").read_text())["radio_packets"]["gap_s"] == 3.0
    shutil.rmtree(folder / "traces")
    # It has no fit: nothing was polled.
    assert main(["report", str(folder), "--mobility", str(folder / "mobility.json")]) == 2
    fit = {"format": "tandem-mobility-fit/1", "classes": ["low", "high"], "bounds_per_five_minutes": [9.0]}
    fit |= {"fitted_on": "x", "accuracy": None, "judged": 0, "confusion": [[0, 0], [0, 0]]}
    (tmp_path / "fit.json").write_text(json.dumps(fit))
    assert main(["report", str(folder), "--mobility", str(tmp_path / "fit.json")]) == 1
    assert "given: fit.json: x" in (folder / "report.html").read_text()
    assert not list((folder / "tables").glob("radio_packets.*"))  # what it was made of is gone


def test_a_manifest_that_is_none_is_one_line_and_2(tmp_path, capsys):
    folder = write(Synthetic(seconds=110.0), tmp_path / "campaign")
    (folder / "traces" / "manifest").mkdir(parents=True)
    (folder / "traces" / "manifest" / "0.json").write_text("[]")
    assert main(["report", str(folder)]) == 2
    assert "no manifest of a part; hint: remove it" in capsys.readouterr().err


def test_of_several_kits_each_has_its_own_captures(tmp_path, capsys):
    """Both kits' runs lie at one time, and the tables hold all captures together."""
    kits = {}
    for n, probe in enumerate(OPERATORS, 1):
        made = Synthetic(seed=n, seconds=110.0)
        manifests = kit(made, probe)
        for manifest in manifests:
            names = [f"captures/{manifest['id']}-{p}.pcap" for p in manifest["paths"]]
            manifest["files"] = [{"name": name, "bytes": len(CAPTURE), "packets": 1} for name in names]
        kits[probe] = made, manifests
    folder = write_export(tmp_path / "out", kits, traces=True)
    for probe, (_, manifests) in kits.items():
        (folder / "probe" / probe / "captures").mkdir()
        for file in (file for manifest in manifests for file in manifest["files"]):
            (folder / "probe" / probe / file["name"]).write_bytes(CAPTURE)
    assert main(["analyse", str(folder / "probe"), "--out", str(folder / "traces"), "--workers", "1"]) == 0
    alone = []
    for probe in (*OPERATORS, None):
        capsys.readouterr()
        assert main(["report", str(folder), "--json", *(["--probe", probe] if probe else [])]) == 0
        alone.append(json.loads(capsys.readouterr().out)["radio_packets"])
    *each, pooled = alone
    captures = [sum(len(m["files"]) for m in manifests) for _, manifests in kits.values()]
    assert [one["captures"] for one in each] == captures
    assert not any("captures_of_no_run" in one for one in alone)
    assert pooled == {
        key: value if key in ("gap_s", "factor") else sum(one[key] for one in each) for key, value in pooled.items()
    }
    lines = (folder / "tables" / "radio_packets.csv").read_text().splitlines()
    assert len(lines) == 1 + pooled["rows"]


def test_a_capture_that_is_cut_is_marked_on_every_figure(tmp_path, capsys):
    folder = write(Synthetic(seconds=110.0), tmp_path / "campaign")
    captures = sorted((folder / "probe").rglob("*.pcap"))
    for capture in captures:
        capture.write_bytes(CAPTURE)
    captures[0].write_bytes(CAPTURE[:-7])
    assert main(["analyse", str(folder / "probe"), "--out", str(folder / "traces"), "--workers", "1"]) == 0
    assert "cut file, 1 times" in capsys.readouterr().err
    main(["report", str(folder)])
    mark = f"1 captures are cut or damaged ({captures[0].name}): figures have what could be read of them"
    lines, note = capsys.readouterr().err.splitlines(), "tandem-server report: note: "
    assert [line for line in lines if line.startswith(note)] == [f"{note}probe-1: {mark}"]
    page = (folder / "report.html").read_text()
    assert mark in page
    assert page.count("Marks above: 1.") == page.count('<figure class="of-paper"') > 0
