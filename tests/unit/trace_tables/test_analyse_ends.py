"""What the command says, and its exit status, when files or the machine are not as they should be."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from folders import command, fill, plain, run, told


def test_a_corrupt_file_beside_good_ones(tmp_path):
    folder = fill(tmp_path, 3)
    (folder / "01a.pcap").write_bytes(b"this is no capture" * 20)
    done = run(folder, "--json", status=1)
    assert len(json.loads(done.stdout)) == 3
    assert done.stderr == f"tandem-server analyse: {folder / '01a.pcap'}: not analysed: not a capture\n"


def test_a_cut_file_is_analysed_and_the_packet_named(tmp_path):
    (tmp_path / "cut.pcap").write_bytes(plain()[:-20])
    done = run(tmp_path, "--json")
    assert json.loads(done.stdout)[0]["bytes"] == 5500
    assert f"{tmp_path / 'cut.pcap'}: cut file, 1 times, first at packet 17\n" in done.stderr


def test_a_file_that_is_not_there(tmp_path):
    folder = fill(tmp_path, 1)
    done = run(folder, tmp_path / "none.pcap", "--json", status=1)
    assert len(json.loads(done.stdout)) == 1
    assert done.stderr == f"tandem-server analyse: {tmp_path / 'none.pcap'}: not analysed: No such file or directory\n"


def test_no_connection_is_an_empty_array(tmp_path):
    (tmp_path / "bad.pcap").write_bytes(b"")
    assert told(tmp_path, status=1) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "required: FILE"),
        (["FOLDER"], "no capture in it"),
        (["FOLDER", "--packets"], "mend: --out DIR"),
        (["FOLDER", "--bins", "0"], "is not a width"),
        (["FOLDER", "--bins", "nan"], "is not a width"),
        (["FOLDER", "--workers", "0"], "not a whole number from 1"),
    ],
)
def test_usage(tmp_path, words, says):
    done = run(*[tmp_path if word == "FOLDER" else word for word in words], status=2)
    assert says in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("module", "words", "says"),
    [
        ("pyarrow", ("--out", "out"), "tables need pyarrow; mend: pip install 'tandem-server[traces]'"),
        (
            "distributed",
            ("--dask", "tcp://127.0.0.1:1"),
            "--dask needs distributed; mend: pip install 'tandem-server[dask]'",
        ),
    ],
)
def test_without_what_tables_and_dask_need_one_line_names_the_mend(tmp_path, module, words, says):
    """A module of that name which cannot be imported stands for none."""
    folder = fill(tmp_path / "caps", 1)
    (tmp_path / f"{module}.py").write_text(f"raise ImportError(\"No module named '{module}'\")\n")
    lacking = dict(os.environ, PYTHONPATH=f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    done = subprocess.run(
        command(folder, *words), env=lacking, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "", f"tandem-server: {says}\n")
    assert not (tmp_path / "out").exists()


def test_a_terminal_gets_a_bar(tmp_path):
    folder = fill(tmp_path, 2)
    terminal, its = os.openpty()
    try:
        done = subprocess.run(command(folder, "--json"), stdout=subprocess.PIPE, stderr=its, check=False)
        os.close(its)
        drawn = b""
        while True:
            try:
                drawn += os.read(terminal, 4096)
            except OSError:  # all that was written is read
                break
    finally:
        os.close(terminal)
    assert done.returncode == 0
    assert "0 of 2 captures" in drawn.decode()
    assert "2 of 2 captures" in drawn.decode()
