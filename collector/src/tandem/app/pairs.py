"""Paired runs, never two at once; and the manifests that they leave."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path

from tandem.app.any_wish import any_wish
from tandem.app.pair_run import PairRun
from tandem.app.plan import Wish, plan
from tandem.app.result_files import relieved
from tandem.app.run_manifest import write_json
from tandem.app.surroundings import Surroundings
from tandem.export import PendingManifests
from tandem.schema.manifest import Manifest
from tandem.spool.durable import write_durably

log = logging.getLogger(__name__)

_MOMENT_S = 5.0
"""For a thread that has nothing more to do than to end."""


class Manifests:
    """Writes manifests and has them sent. One that the disk does not take is kept and tried again by ``retry``. ``written`` is told the run
    of each that is on the disk."""

    def __init__(
        self, runs: Path, pending: PendingManifests, written: Callable[[str], None] = lambda _run: None
    ) -> None:
        self._runs, self._pending, self._written = runs, pending, written
        self._lock = threading.Lock()
        self._unwritten: list[tuple[Manifest, dict[str, bytes]]] = []

    def save(self, manifest: Manifest) -> None:
        """Write it, from any thread, with what is too long for it as files beside it (``result_files``)."""
        kept, files = relieved(manifest)
        for name, content in files.items():
            log.info("%s: %d bytes of its result lie in %s, which the manifest names", kept["id"], len(content), name)
        with self._lock:
            self._unwritten.append((kept, files))
        self.retry()

    def retry(self) -> int:
        """Write what could not be written; how many still are not."""
        with self._lock:
            while self._unwritten:
                manifest, files = self._unwritten[0]
                try:
                    for name, content in files.items():  # before the manifest that names them
                        (self._runs.parent / name).parent.mkdir(parents=True, exist_ok=True)
                        write_durably(self._runs.parent / name, content)
                    write_json(self._runs / f"{manifest['id']}.json", {**manifest})
                    self._pending.add(manifest["id"])
                except OSError as error:
                    log.error("%s: the manifest of %s waits in memory: %s", self._runs, manifest["id"], error.strerror)
                    break
                self._unwritten.pop(0)
                self._written(manifest["id"])
            return len(self._unwritten)


class Pairs:
    """Begins pairs when told, from any thread."""

    def __init__(self, around: Surroundings, number: int) -> None:
        """``number``: of the first pair, counted over the whole campaign."""
        self._around, self._number = around, number
        self._lock = threading.Lock()
        self._current: PairRun | None = None
        self._closed = self._held = False

    def begin(self, wish: Wish) -> str | None:
        """Begin a pair; its id, or None when one is running already, a modem is being recovered or the collector stops."""
        current = self._current
        if current is not None and current.measured:
            current.join(_MOMENT_S)  # who was told of its end asks for the next at once
        with self._lock:
            if self._closed or self._held or self.running:
                return None
            planned = plan(self._around.config, wish, self._number)
            self._number += 1
            self._current = PairRun(self._around, planned)
            self._current.start()
            return planned.pair

    def request(self, experiment: str, parameters: dict[str, object]) -> str:
        """As told through the status socket; ValueError with the reason when it cannot be."""
        around = self._around
        wish = any_wish(around.config, around.registry, experiment, parameters, "request")
        missing = around.parts.lack(wish.conditions)
        if missing is not None:
            raise ValueError(missing)
        pair = self.begin(wish)
        if pair is None:
            doing = "a modem is being recovered" if self._held else "another pair is running"
            raise ValueError(f"{doing}; try again when it has ended")
        return pair

    def cancel(self, pair: str | None = None) -> str:
        """End the pair that runs, and keep what it measured; its id. None: whichever runs. ValueError when it does not run."""
        with self._lock:
            current = self._current
            if current is None or not current.running:
                raise ValueError("nothing is being measured")
            if pair not in (None, current.plan.pair):
                raise ValueError(f"{pair} is not what is being measured: {current.plan.pair} is")
            current.stop()
            return current.plan.pair

    def hold(self) -> bool:
        """Whether no pair is running; if so, none begins until ``release``."""
        with self._lock:
            self._held = not self.running
            return self._held

    def release(self) -> None:
        """Let pairs begin again."""
        self._held = False

    @property
    def running(self) -> bool:
        """Whether a pair is running."""
        current = self._current
        return current is not None and current.running

    def end(self, pair: str) -> None:
        """End this pair if it is the one that runs; what it measured counts. Returns at once."""
        with self._lock:
            if self._current is not None and self._current.plan.pair == pair:
                self._current.stop()

    def stop(self) -> None:
        """End the pair that runs, keep what it measured, and begin no other. Returns at once."""
        with self._lock:
            self._closed = True
            if self._current is not None:
                self._current.stop()

    def join(self, timeout_s: float) -> None:
        """Wait until the pair that runs has ended."""
        current = self._current
        if current is not None:
            current.join(timeout_s)


def pairs_so_far(runs: Path) -> int:
    """Pairs that left a manifest, so that a restart goes on in the row of random orders."""
    pairs = set()
    for file in runs.glob("*.json"):
        try:
            pairs.add(json.loads(file.read_bytes())["pair"])
        except (ValueError, KeyError, TypeError, OSError):
            log.warning("%s is no manifest", file)
    return len(pairs)
