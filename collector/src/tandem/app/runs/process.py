"""One experiment's process: started with its parameters, its JSON lines read, ended whatever happens."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NoReturn

from tandem.experiment.base import STOPPED

log = logging.getLogger(__name__)

STOP_S = 8.0
"""After SIGTERM the process closes its session and tells what it measured; then it is killed."""

SILENT_S = 30.0
"""A process that beats (``tandem.experiment.base``) and then says nothing for so long is ended."""

_LOOK_MS = 100
"""How often it is looked whether to stop."""
_MOST_LOOK_S = 0.5
"""What one look counts at most: while the collector itself was stopped it could hear nothing."""
_LONGEST_LINE = 64 * 1024 * 1024
"""Of a result: a day's play in segments of a second has some 50 MB."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended. ``result``: the figures, None when nothing was measured; ``failure``: reason and retry, None when it was
    measured whole; at least one of the two is there. ``said``: the whole last line."""

    result: dict[str, Any] | None
    failure: dict[str, Any] | None
    environment: dict[str, Any]
    said: dict[str, Any] = field(default_factory=dict)


class ExperimentProcess:
    """``on_line`` is called from a thread of this object with every object that the process writes, the last excepted. ``folder``:
    where relative names of its parameters start from, as those of the configuration do."""

    def __init__(
        self,
        command: Sequence[str],
        parameters: Mapping[str, Any],
        on_line: Callable[[dict[str, Any]], None],
        name: str,
        folder: Path | None = None,
    ) -> None:
        self._on_line, self._name = on_line, name
        self._words: deque[str] = deque(maxlen=20)
        self._last: dict[str, Any] | None = None
        self._stopping = self._overdue = self._silent = False
        self._heard, self._beats = 0, False
        # Its own session: Ctrl-C in a terminal must not end the run before the collector says so.
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            cwd=folder,
        )
        out, err = self._process.stdout, self._process.stderr
        if out is None or err is None:
            raise RuntimeError("Popen made no pipes")
        self._threads = [
            threading.Thread(target=self._read, args=(out,), name=f"run {name}", daemon=True),
            threading.Thread(target=self._listen, args=(err,), name=f"log {name}", daemon=True),
        ]
        try:
            for thread in self._threads:
                thread.start()
        except RuntimeError as error:  # no thread is left: a process that nobody reads must not stay behind
            self._process.kill()
            self._process.wait()
            raise OSError(str(error)) from error
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError), self._process.stdin as stdin:
                stdin.write(json.dumps(parameters).encode())

    def wait(self, deadline_s: float, stop: threading.Event, silent_s: float = SILENT_S) -> Ending:
        """Wait for the end, at most ``deadline_s``; when ``stop`` is set the process is told to stop, and what it measured until
        then counts. So is one that fell silent for ``silent_s``."""
        until = time.monotonic() + deadline_s
        self._await_end(until, stop, silent_s)
        if self._process.poll() is None:
            self._stopping, self._overdue = stop.is_set(), not stop.is_set()
            self._process.send_signal(signal.SIGTERM)
            if self._silent:
                self._process.send_signal(signal.SIGCONT)  # one that was stopped hears nothing before
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for thread in self._threads:
            thread.join()
        return self._ending(f"silent for {silent_s:g} s" if self._silent else f"not done after {deadline_s:.0f} s")

    def _await_end(self, until: float, stop: threading.Event, silent_s: float) -> None:
        # Not by Popen.wait, which with a timeout wakes eighty times a second to look.
        ended = select.poll()
        try:
            pidfd = os.pidfd_open(self._process.pid)
            ended.register(pidfd, select.POLLIN)
        except OSError:  # before Linux 5.3, or no descriptor is left: the end is seen when it is looked for
            pidfd = -1
        try:
            heard, quiet_s, looked_s = self._heard, 0.0, time.monotonic()
            while not stop.is_set() and looked_s < until and not ended.poll(_LOOK_MS) and self._process.poll() is None:
                now_s = time.monotonic()
                quiet_s = quiet_s + min(now_s - looked_s, _MOST_LOOK_S) if self._heard == heard else 0.0
                heard, looked_s = self._heard, now_s
                if self._beats and quiet_s > silent_s:
                    self._silent = True
                    break
        finally:
            if pidfd >= 0:
                os.close(pidfd)

    def _ending(self, overdue: str) -> Ending:
        last = self._last or {}
        result = last.get("result") if isinstance(last.get("result"), dict) else None
        failure = last.get("failure") if isinstance(last.get("failure"), dict) else None
        environment = last.get("environment") if isinstance(last.get("environment"), dict) else {}
        if self._overdue and (failure is None or failure.get("reason") == STOPPED["reason"]):
            # It says that it was stopped; it was us, and this is why.
            failure = {"reason": overdue, "retry": True}
        elif failure is None and result is None:
            words = self._words[-1] if self._words else "it said nothing"
            if self._stopping:
                failure = dict(STOPPED)
            else:
                failure = {
                    "reason": f"the experiment ended with status {self._process.returncode}: {words}",
                    "retry": False,
                }
        return Ending(result, failure, environment or {}, last)

    def _read(self, out: IO[bytes]) -> None:
        with out:
            while line := out.readline(_LONGEST_LINE):
                if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
                    self._words.append(f"a line of more than {_LONGEST_LINE >> 20} MiB, which is not taken")
                    log.error("%s: %s", self._name, self._words[-1])
                    while (rest := out.readline(1 << 20)) and not rest.endswith(b"\n"):
                        pass  # it must not stand still with a full pipe
                    continue
                try:
                    said = json.loads(line, parse_constant=_no_constant)
                except (ValueError, RecursionError):
                    said = None
                self._heard += 1
                if not isinstance(said, dict):
                    log.warning("%s: a line that is no JSON object: %r", self._name, line[:80])
                elif said.get("type") == "result":
                    self._last = said
                elif said.get("type") == "alive":
                    self._beats = True
                else:
                    try:
                        self._on_line(said)
                    except Exception:
                        # The reader must go on: a full pipe would stop the measurement.
                        log.exception("%s: a line could not be used", self._name)

    def _listen(self, err: IO[bytes]) -> None:
        with err:
            for raw in err:
                text = raw.decode("utf-8", "replace").rstrip()
                if text:
                    self._words.append(text)
                    log.info("%s: %s", self._name, text)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
