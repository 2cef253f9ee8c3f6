"""The commands: one clear line and the right exit status for whatever is wrong."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support.serve_on_loopback import await_ready, command, end, lay_out, start, tandem_server


@pytest.fixture(scope="module")
def laid(tmp_path_factory):
    """A folder in which a whole server is started again and again, and its ports."""
    folder = tmp_path_factory.mktemp("laid")
    return folder, lay_out(folder)


def test_when_one_part_dies_all_end_and_it_is_named(laid):
    folder, _ = laid
    process = start(folder)
    await_ready(process, "worker")
    children = [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    assert len(children) == 4
    gateway = next(pid for pid in children if b"gateway" in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(gateway, signal.SIGKILL)
    assert process.wait(120) == 1
    process.stdout.close()
    assert "gateway ended" in (folder / "serve.log").read_text()
    for pid in children:
        assert not Path(f"/proc/{pid}").exists()


def test_sigterm_while_starting_is_a_clean_end_and_ctrl_c_ends_all_with_130(laid):
    process = start(laid[0])
    await_ready(process, "database")
    assert end(process) == 0
    process = start(laid[0])
    await_ready(process, "gateway")
    process.send_signal(signal.SIGINT)
    assert process.wait(120) == 130
    process.stdout.close()


def test_what_the_environment_lacks_is_told_in_one_line_with_status_3(laid):
    folder, ports = laid
    config, other = folder / "server.toml", folder / "other.toml"
    elsewhere = config.read_text().replace("[store]\nbinary", "[store]\nfolder='nowhere/influxdb'\n#")
    other.write_text(elsewhere)
    (folder / "nowhere").write_text("a file")
    with contextlib.ExitStack() as taken:
        for port in ports:
            taken.enter_context(socket.create_server(("127.0.0.1", port)))
        cases = [("gateway", config, ports[0]), ("endpoint", config, ports[2]), ("database", config, ports[3])]
        told = [(serve_refused(role, file), port) for role, file, port in [*cases, ("database", other, "nowhere")]]
        taken.pop_all().close()
        taken.enter_context(socket.create_server(("127.0.0.1", ports[1])))
        told.append((serve_refused("endpoint", config), ports[1]))
    for (status, error), word in told:
        assert (status, error.count("\n"), "; hint: " in error, str(word) in error) == (3, 1, True, True), error
    (folder / "tls/server.key").unlink()
    status, error = serve_refused("gateway", config)
    assert (status, "hint: tandem-server tls" in error) == (3, True)


def serve_refused(role, config):
    refused = tandem_server("serve", role, "--config", config)
    return refused.returncode, refused.stderr


def test_a_probe_is_added_once_and_not_without_its_token_revoked_and_listed(tmp_path):
    (tmp_path / "server.toml").write_text("")
    config = ("--config", tmp_path / "server.toml")
    assert command("probe", "add", "probe-1", *config)[1].startswith("tandem_")
    status, out, told = command("probe", "add", "probe-1", *config)
    assert (status, out, told.count("\n")) == (2, "", 1)
    assert [command("probe", "revoke", name, *config)[0] for name in ("probe-1", "probe-2")] == [0, 2]
    (listed,) = command("probe", "list", *config)[1].splitlines()[-1:]
    assert ("probe-1" in listed, "revoked" in listed) == (True, True)
    status, _, told = command("probe", "add", "probe-3", *config, "--token-file", tmp_path / "no/such/token")
    assert (status, told.count("\n")) == (3, 1)
    assert "probe-3" not in command("probe", "list", *config)[1]


def test_certificates_are_not_replaced_unasked(tmp_path):
    args = ("tls", "--folder", tmp_path, "--name", "server.tandem.test")
    assert command(*args)[0] == 0
    before = (tmp_path / "server.pem").read_bytes()
    status, _, told = command(*args)
    assert (status, told.count("\n")) == (2, 1)
    assert (tmp_path / "server.pem").read_bytes() == before
    assert command(*args, "--force")[0] == 0
    assert (tmp_path / "server.pem").read_bytes() != before
    assert command("tls", "--folder", tmp_path, "--name", "bad name")[0] == 2
    assert command("tls", "--folder", tmp_path, "--name", "x", "--address", "1.2.3")[0] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ca.key", "ca.pem", "server.key", "server.pem"]


# --- a log whose disk is full

SET_UP = "import logging, sys; from tandem_server.cli.log import log_to_stderr"
ONCE_FULL = f"""{SET_UP}
class Disk:
    full = True
    def write(self, text):
        if self.full:
            self.full = False
            raise OSError(28, "No space left on device")
        return sys.__stderr__.write(text)
    def flush(self):
        sys.__stderr__.flush()
sys.stderr = Disk()
log_to_stderr()
logging.warning("lost")
logging.warning("told")
"""
"""A disk that does not take the first line and takes all that follows, a traceback too."""


def test_a_line_that_the_disk_does_not_take_is_lost_without_a_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", ONCE_FULL], capture_output=True, text=True, check=True)
    (line,) = done.stderr.splitlines()
    assert line.endswith(" WARNING root: told")


def test_the_program_goes_on_while_the_disk_is_full() -> None:
    tells = f"{SET_UP}; log_to_stderr(); logging.warning('x' * 10000); print('went on', flush=True)"
    with Path("/dev/full").open("w") as full:  # takes nothing
        done = subprocess.run(
            [sys.executable, "-c", tells], stdout=subprocess.PIPE, stderr=full, text=True, check=False
        )
    assert done.stdout == "went on\n"
