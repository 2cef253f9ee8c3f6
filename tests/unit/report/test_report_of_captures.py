"""``tandem-server analyse DIR/probe --out DIR/traces``, then ``report DIR``: the captures' bins reach the figures."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from synthetic_campaign import Synthetic
from synthetic_folder import write

from tandem_server.analysis.radio.columns import COLUMNS
from tandem_server.cli.main import main

pytest.importorskip("pyarrow", reason="no pyarrow; pip install -r requirements/dev.txt")
sys.path.append(str(Path(__file__).resolve().parents[1] / "traces_core"))
import native  # noqa: F401  (skips where the native pass is not built)
from captures import pcap
from scenes import plain_download

LACKING = "bins of the packet captures"


def test_bins_of_the_captures_reach_the_figures(tmp_path):
    made = Synthetic(seconds=110.0)
    folder = write(made, tmp_path / "campaign")
    assert main(["report", str(folder)]) == 1  # no database
    assert LACKING in (folder / "report.html").read_text()
    for capture in (folder / "probe").rglob("*.pcap"):
        capture.write_bytes(pcap(plain_download().packets))
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
    assert (
        main(["report", str(folder), "--mobility", str(folder / "mobility.json")]) == 2
    )  # it has no fit: nothing was polled
    fit = {
        "format": "tandem-mobility-fit/1",
        "classes": ["low", "high"],
        "bounds_per_five_minutes": [9.0],
        "fitted_on": "x",
    }
    (tmp_path / "fit.json").write_text(
        json.dumps({**fit, "accuracy": None, "judged": 0, "confusion": [[0, 0], [0, 0]]})
    )
    assert main(["report", str(folder), "--mobility", str(tmp_path / "fit.json")]) == 1
    assert "given: fit.json: x" in (folder / "report.html").read_text()
    assert not list((folder / "tables").glob("radio_packets.*"))  # what it was made of is gone


def test_a_manifest_that_is_none_is_one_line_and_2(tmp_path, capsys):
    folder = write(Synthetic(seconds=110.0), tmp_path / "campaign")
    (folder / "traces" / "manifest").mkdir(parents=True)
    (folder / "traces" / "manifest" / "0.json").write_text("[]")
    assert main(["report", str(folder)]) == 2
    assert "no manifest of a part; mend: remove it" in capsys.readouterr().err
