"""A small download over each path, then a verdict on those that carried it, by the collector."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tandem.app.daemon.status_socket import NAME, NoCollectorError, ask
from tandem.app.preflight.checks import Measured

DOWNLOAD_BYTES, VERDICT_BYTES = 200_000, 100_000
_DOWNLOAD_S, _VERDICT_S, _JOIN_S = 45.0, 30.0, 3.0
_SILENT_S = 20.0
"""A collector that measures tells of it twice a second."""
_AGAIN_S = 1.0
_OWN_END_S = 20.0
"""A run of ours that is told as done may still be closing its session over a path that brings nothing."""


class HeldError(Exception):
    """Something else is measured, or the collector does not do it."""


class Measuring:
    """``folder``: the collector's; ``wait_s``: for what else is being measured; ``tell``: what goes on, for people."""

    def __init__(self, folder: Path, wait_s: float, tell: Callable[[str], None]) -> None:
        self._folder, self._tell = folder, tell
        self._until_s = time.monotonic() + wait_s

    def over(self, paths: Sequence[str]) -> Measured:
        """``paths``: those that are up."""
        downloads: dict[str, dict[str, Any]] = {}
        try:
            if paths:
                self._idle()
            for path in paths:
                self._tell(f"a download over {path} …")
                parameters = {"kind": "tcp", "path": path, "bytes": DOWNLOAD_BYTES, "deadline_s": _DOWNLOAD_S}
                downloads[path] = self._run("download", parameters)
            good = [path for path in paths if downloads[path].get("ok")]
            if not good:
                return Measured(downloads=downloads)
            self._tell(f"the verdict on Multipath TCP over {', '.join(good)} …")
            own = {"bytes": VERDICT_BYTES, "join_wait_s": _JOIN_S}
            row = self._run("verdict", {"paths": good, "parameters": own, "deadline_s": _VERDICT_S * (1 + len(good))})
        except HeldError as error:
            return Measured(held=str(error), downloads=downloads)
        return self._verdict(row, downloads)

    def _verdict(self, row: dict[str, Any], downloads: dict[str, dict[str, Any]]) -> Measured:
        file = self._folder / "runs" / f"{row.get('id')}.json"
        try:
            result = json.loads(file.read_bytes())["result"]
            verdicts = dict((result or {}).get("paths") or {})
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            return Measured(downloads=downloads, verdict_failure=f"its result cannot be read: {error}")
        return Measured(downloads=downloads, verdicts=verdicts, verdict_failure=row.get("failure"))

    def _idle(self) -> None:
        """HeldError when a campaign or a run still holds when the time is over."""
        while True:
            answer = next(iter(self._ask({"op": "campaign", "action": "idle"})), {})
            held = answer.get("held") or (answer.get("reason") if answer.get("type") == "refused" else None)
            if not held:
                return
            self._wait(str(held))

    def _wait(self, why: str) -> None:
        if time.monotonic() > self._until_s:
            raise HeldError(why)
        time.sleep(_AGAIN_S)

    def _run(self, experiment: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """The row of its one run; ``failure`` tells why there is none."""
        row = self._begun(experiment, parameters)
        self._until_s = max(self._until_s, time.monotonic() + _OWN_END_S)
        return row

    def _begun(self, experiment: str, parameters: dict[str, Any]) -> dict[str, Any]:
        while True:
            for answer in self._ask({"op": "start", "experiment": experiment, "parameters": parameters}):
                kind, reason = answer.get("type"), str(answer.get("reason"))
                if kind == "refused" and "try again when it has ended" in reason:
                    break
                if kind in ("refused", "error"):
                    raise HeldError(f"the collector refused: {reason}")
                if kind == "done":
                    rows = answer.get("results") or []
                    return dict(rows[-1]) if rows else {"ok": False, "failure": "the run did not come to an end"}
            else:
                raise HeldError("the collector ended meanwhile")
            self._wait("another run goes on")

    def _ask(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """All answers but progress."""
        try:
            return [a for a in ask(self._folder / NAME, request, _SILENT_S) if a.get("type") != "progress"]
        except NoCollectorError as error:
            raise HeldError(f"no collector answers: {error}") from error
        except TimeoutError as error:
            raise HeldError("the collector said nothing for 20 s") from error
