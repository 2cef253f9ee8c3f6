"""``process_batch`` in a process that is killed by SIGKILL, as the kernel does when memory is short: when it comes to read a certain
capture, or when it has put a part's tables in place and not yet its manifest. Or the process that began it is killed then. Run as a
program it is the server's worker: ``killing.py CONFIG``.

``TANDEM_TEST_KILLS``: a folder. In it ``always``, ``once``, ``written`` or ``pass_written`` has in it the name of the capture; all but
``always`` are removed by the process that they kill, so that the next one is not.
"""

import os
import signal
import sys
from pathlib import Path
from unittest.mock import patch

from tandem_server.analysis.traces import batch, manifest

read, write, process_batch_itself = batch._read, manifest.write, batch.process_batch


def _kill(sort: str, path: str) -> None:
    order = Path(os.environ["TANDEM_TEST_KILLS"]) / sort
    if order.exists() and order.read_text() == Path(path).name:
        if sort != "always":
            order.unlink()
        if sort.startswith("pass"):
            os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def _read(path, *rest):
    for sort in ("always", "once"):
        _kill(sort, path)
    return read(path, *rest)


def _write(out, part):
    for capture in part.files:
        _kill("written", capture.file)
        _kill("pass_written", capture.file)
    write(out, part)


def process_batch(paths, bin_ns, packets, out):
    """As the one of that name."""
    with patch.object(batch, "_read", _read), patch.object(manifest, "write", _write):
        return process_batch_itself(paths, bin_ns, packets, out)


if __name__ == "__main__":
    import killing  # by its name: processes that are started import it

    from tandem_server.cli import worker
    from tandem_server.cli.configuration import load
    from tandem_server.derived import tables

    tables.process_batch = killing.process_batch
    worker.serve(load(Path(sys.argv[1])))
