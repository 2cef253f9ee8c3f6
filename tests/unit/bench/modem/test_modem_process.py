"""Modems as processes: a real pseudo-terminal, read by pyserial as a real port is."""

import json
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import serial

from support.modem_on_fake_clock import write_timeline
from tandem_bench.modem.process import luhn


def command_line(folder: Path, *more: str) -> list[str]:
    timeline = write_timeline(folder / "a.jsonl", [{}] * 10)
    return [
        sys.executable, "-m", "tandem_bench", "modem", "--family", "generic", "--timeline", str(timeline), "--link",
        str(folder / "a"), "--control", str(folder / "a.sock"), "--json-log", str(folder / "truth.jsonl"), *more,
    ]  # fmt: skip


@contextmanager
def running(folder: Path, *more: str):
    """A modem process that has said it is ready; it is ended, and its exit status checked."""
    with subprocess.Popen(command_line(folder, *more), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == f"ready {folder / 'a'}\n"
            yield process
        finally:
            process.terminate()
            assert process.wait(60) == 0
    assert not (folder / "a").is_symlink()
    assert not (folder / "a.sock").exists()


def open_port(folder: Path) -> serial.Serial:
    return serial.Serial(str(folder / "a"), 115200, timeout=60.0)


def answers(port: serial.Serial) -> bool:
    port.write(b"AT\r")
    return port.read_until(b"\r\nOK\r\n").endswith(b"\r\nOK\r\n")


def play(folder: Path, wish: dict[str, object]) -> dict[str, object]:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(folder / "a.sock"))
        client.sendall(json.dumps(wish).encode() + b"\n")
        with client.makefile() as answers:
            return json.loads(answers.readline())


def test_disappearing_hangs_up_and_comes_back_under_another_number(tmp_path):
    with running(tmp_path) as _:
        first = (tmp_path / "a").readlink()
        with open_port(tmp_path) as port:
            assert play(tmp_path, {"fault": "disappear", "seconds": 3600}) == {"ok": True}
            assert not (tmp_path / "a").is_symlink()
            with pytest.raises(serial.SerialException):
                port.read(100)
        assert play(tmp_path, {"fault": "disappear", "seconds": 0.1}) == {"ok": True}
        until = time.monotonic() + 60
        while not (tmp_path / "a").is_symlink() and time.monotonic() < until:
            time.sleep(0.01)  # there is nothing to wait on but the name
        assert (tmp_path / "a").readlink() != first
        with open_port(tmp_path) as port:
            assert answers(port)


def test_scheduled_fault_is_played_at_its_time(tmp_path):
    faults = tmp_path / "faults.jsonl"
    faults.write_text('{"t_s": 100.4, "fault": "hang", "seconds": 30}\n{"t_s": 1, "fault": "hang", "seconds": 2}\n')
    epoch = time.monotonic_ns() - 100 * 10**9
    with running(tmp_path, "--faults", str(faults), "--epoch-ns", str(epoch)) as _:
        until = time.monotonic() + 60
        while not (lines := (tmp_path / "truth.jsonl").read_text()).endswith("\n") and time.monotonic() < until:
            time.sleep(0.01)  # as above
    log = [json.loads(line) for line in lines.splitlines()]
    assert [line["fault"] for line in log] == ["hang"]
    assert log[0]["t_s"] >= 100.4
    assert set(log[0]) == {"t_s", "monotonic_ns", "utc_ns", "type", "operator", "fault", "seconds"}


def test_interrupt_ends_it_as_ctrl_c_does(tmp_path):
    with subprocess.Popen(command_line(tmp_path), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert not (tmp_path / "a").is_symlink()


def test_names_left_behind_by_a_killed_modem_are_taken_over(tmp_path):
    with subprocess.Popen(command_line(tmp_path), stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        killed.stdout.readline()
        killed.kill()
    assert (tmp_path / "a").is_symlink()
    with running(tmp_path) as _, open_port(tmp_path) as port:
        assert answers(port)


def refused(arguments: list[str]) -> tuple[int, str]:
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stderr


def test_bad_input_is_one_line_that_names_it(tmp_path):
    (tmp_path / "bad.jsonl").write_text("{}\n")
    (tmp_path / "file").write_text("precious")
    for more, status, said in (
        (["--timeline", str(tmp_path / "bad.jsonl")], 2, "bad.jsonl:1: format is None"),
        (["--faults", str(tmp_path / "bad.jsonl")], 2, "bad.jsonl:1: t_s is None"),
        (["--link", str(tmp_path / "none" / "a")], 3, "its folder does not exist"),
        (["--link", str(tmp_path / "file")], 3, "exists and is no symbolic link"),
        (["--control", str(tmp_path / "none" / "c")], 3, "give another --control"),
        (["--json-log", str(tmp_path / "none" / "l")], 3, "No such file or directory"),
    ):
        got, stderr = refused([*command_line(tmp_path), *more])
        assert (got, stderr.count("\n")) == (status, 1), stderr
        assert said in stderr
    assert (tmp_path / "file").read_text() == "precious"


def test_check_digit_is_that_of_a_published_example_and_an_imei_that_does_not_check_is_refused(tmp_path):
    assert luhn("49015420323751") == "8"
    status, stderr = refused([*command_line(tmp_path), "--imei", "004401010000018"])
    assert (status, "its last digit should be 2" in stderr) == (2, True)


@pytest.mark.parametrize("deep", ["", f"{'d' * 60}/{'e' * 60}"], ids=["", "in a deep folder"])
def test_control_socket_of_a_living_modem_is_not_taken(tmp_path, deep):
    (tmp_path / deep).mkdir(parents=True, exist_ok=True)
    with running(tmp_path / deep) as _:
        assert (tmp_path / deep / "a.sock").is_socket()
        status, stderr = refused([*command_line(tmp_path / deep), "--link", str(tmp_path / "other")])
        assert (status, "give another --control" in stderr) == (3, True)


def test_client_that_sends_rubbish_is_answered_and_does_no_harm(tmp_path):
    with running(tmp_path) as _:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(tmp_path / "a.sock"))
            client.sendall(b"\xff\xfe\n[[[[\n")
            with client.makefile() as answers:
                assert [json.loads(answers.readline())["ok"] for _ in range(2)] == [False, False]
            with suppress(BrokenPipeError, ConnectionResetError):
                client.sendall(b"x" * 100_000)
        assert play(tmp_path, {"rrc": "idle"}) == {"ok": True}
