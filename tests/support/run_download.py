"""Start ``python -m tandem.experiment download`` as the collector does, and read its lines."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from support.run_experiment import started


class Run:
    """A running download. ``enter``: command in front of it, to run inside a namespace."""

    def __init__(self, parameters: dict[str, Any], enter: tuple[str, ...] | list[str] = ()) -> None:
        self.process = started(enter, "download", parameters)
        self.lines: list[dict[str, Any]] = []

    def until(self, seen: Callable[[dict[str, Any]], object]) -> None:
        """Read lines until a sample for which ``seen`` holds."""
        assert self.process.stdout is not None
        while not (self.samples and seen(self.samples[-1])):
            text = self.process.stdout.readline()
            assert text, f"ended after {self.lines}: {self.process.stderr and self.process.stderr.read()}"
            self.lines.append(json.loads(text))

    def end(self, seconds: float = 240) -> dict[str, Any]:
        """Wait for the end; the result line. The exit status is in ``process.returncode``."""
        assert self.process.stdout is not None
        late = threading.Timer(seconds, self.process.kill)
        late.start()
        try:
            # Not by communicate() alone: it passes by what readline() took in beyond its line.
            self.lines += [json.loads(line) for line in self.process.stdout]
            _, self.stderr = self.process.communicate()
        finally:
            late.cancel()
        assert self.lines, self.stderr
        assert self.lines[-1]["type"] == "result", self.stderr
        return self.lines[-1]

    @property
    def samples(self) -> list[dict[str, Any]]:
        """The sample lines so far."""
        return [line for line in self.lines if line["type"] == "sample"]
