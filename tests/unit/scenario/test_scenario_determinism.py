"""The same file, duration and seed give the same bytes, whatever the process looks like."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

from tandem_bench.scenario import load, play, replay, write_timelines

PROGRAM = """
import hashlib, json
from tandem_bench.scenario import load, play
played = play(load("commute", 40, 7))
text = "".join(line for t in played.operators.values() for line in t.lines()) + json.dumps(played.events)
print(hashlib.sha256(text.encode()).hexdigest())
"""


def digest(seed: int) -> str:
    played = play(load("commute", 40, seed))
    text = "".join(line for t in played.operators.values() for line in t.lines()) + json.dumps(played.events)
    return hashlib.sha256(text.encode()).hexdigest()


def test_same_seed_same_bytes_whatever_the_hash_seed_and_the_threads_and_another_seed_others():
    environment = dict(os.environ, PYTHONHASHSEED="12345", OMP_NUM_THREADS="4", OPENBLAS_NUM_THREADS="4")
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    shown = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == digest(7) != digest(8)


def test_operators_differ():
    played = play(load("commute", 40, 7))
    a, b = played.operators.values()
    assert a.columns["rsrp_dbm"] != b.columns["rsrp_dbm"]
    assert not set(a.columns["eci"]) & set(b.columns["eci"])


def test_files_are_written_whole_and_alike(tmp_path):
    played = play(load("still", 20, 3))
    first, second = write_timelines(played, tmp_path / "one"), write_timelines(played, tmp_path / "two")
    for operator in ("A", "B"):
        assert first[operator].read_bytes() == second[operator].read_bytes()
        assert len(first[operator].read_text().splitlines()) == 1 + 200
    assert sorted(p.name for p in (tmp_path / "one").iterdir()) == ["timeline-A.jsonl", "timeline-B.jsonl"]


def test_replay_same_seed_same_bytes(tmp_path: Path):
    log = tmp_path / "log.csv"
    head = "Timestamp,Speed,NetworkMode,RSRP,RSRQ,SNR,RSSI,DL_bitrate,UL_bitrate,State,LACHEX,RAWCELLID\n"
    rows = [f"2020.01.01_00.00.{s:02},0,LTE,-90,-10,5,-70,9000,90,D,1A,{256 * (s // 9 + 1)}\n" for s in range(40)]
    log.write_text(head + "".join(rows))
    one, same, other = (replay(log, log, seed=seed) for seed in (1, 1, 2))
    assert one.events == same.events
    assert one.events != other.events, "interruptions are drawn from the seed"
