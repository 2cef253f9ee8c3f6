"""The distribution's VictoriaMetrics on loopback, for tests: started, killed and started again over the same folder."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tandem_server.store import StoreDown, Victoria


def find():
    """The program, as `kit` names it; the test skips where it cannot be had."""
    built = Path(__file__).resolve().parents[2] / "build/victoriametrics/victoria-metrics"
    named = os.environ.get("TANDEM_VICTORIAMETRICS")
    if named:
        assert Path(named).is_file(), f"TANDEM_VICTORIAMETRICS names {named}, which is no file"
        return named
    found = str(built) if built.is_file() else shutil.which("victoria-metrics")
    if found is None:
        pytest.skip("no victoria-metrics; ./kit test unpacks it")
    return found


class VictoriaMetrics:
    def __init__(self, folder, *flags):
        self.folder, self.flags, self.process = folder, flags, None
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]

    def client(self, host="127.0.0.1", **more):
        return Victoria(f"http://{host}:{self.port}", "tandem", **{"texts": "labels", "retention_days": None, **more})

    def start(self):
        listen = [f"-httpListenAddr=127.0.0.1:{self.port}", f"-storageDataPath={self.folder / 'vm'}"]
        with (self.folder / "vm.log").open("ab") as log:
            self.process = subprocess.Popen([find(), *listen, *self.flags], stdout=log, stderr=log)
        with contextlib.closing(self.client()) as client:
            deadline = time.monotonic() + 120
            while True:
                assert self.process.poll() is None, (self.folder / "vm.log").read_text()[-500:]
                try:
                    if client._link.request("GET", "/health")[0] == 200:
                        return self
                except StoreDown:
                    assert time.monotonic() < deadline
                    time.sleep(0.02)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill()
