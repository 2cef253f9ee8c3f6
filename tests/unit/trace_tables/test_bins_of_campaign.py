"""The tables of a campaign's captures, as the papers' figures get them."""

from __future__ import annotations

import numpy as np
import pytest
from captures import EPOCH
from folders import plain, run, two_subflows

from tandem_server.analysis.clock import Clock
from tandem_server.analysis.folder import Capture
from tandem_server.analysis.papers.folder_bins import bins_of_folder

pytest.importorskip("pyarrow", reason="no pyarrow; pip install -r requirements/dev.txt")


def test_bins_by_run_and_path(tmp_path):
    captures = tmp_path / "captures"
    captures.mkdir()
    (captures / "a.pcap").write_bytes(plain())
    (captures / "both.pcap").write_bytes(two_subflows())
    (captures / "stray.pcap").write_bytes(plain())
    run(captures, "--out", tmp_path / "traces")
    listed = [
        Capture("captures/a.pcap", 0, None, "run-1", "modem-1", False),
        Capture("captures/both.pcap", 0, None, "run-2", None, False),
        Capture("captures/stray.pcap", 0, None, None, None, False),
    ]
    made = bins_of_folder(tmp_path, listed, Clock(EPOCH - 10 * 10**9))
    assert [(bins.run, bins.path) for bins in made] == [("run-1", "modem-1"), ("run-2", ""), ("run-2", None)]
    assert all(bins.t_s[0] >= 10 and np.allclose(np.diff(bins.t_s), 0.1) for bins in made)
    assert np.nanmax(made[2].reorder_queue_bytes) == 2000
    assert np.nanmax(made[0].in_flight_bytes) > 0


def test_without_tables_there_are_none(tmp_path):
    assert bins_of_folder(tmp_path, [], Clock(0)) == []
