"""A probe in a world whose time is known: boots, quartzes, clocks that are set wrong, a network that comes and goes; with the real clock,
spool, exporter's step and the gateway's own checks. Only time, the network and the database are made up."""

import gzip
import json
from pathlib import Path

from tandem.export.clock import Clock, Reading
from tandem.export.exporter import Batches, PendingManifests
from tandem.export.gateway import Answer, Later
from tandem.schema.line_protocol import parse
from tandem.schema.record import Record
from tandem.spool import Spool
from tandem_server.ingest.lines import TimeWindow, validate_batch

S = 10**9
BEGIN_NS = 1_790_000_000 * S


class World:
    """``truth``: UTC of each record by its number. ``stored``: its times and stated errors in the database, by its number."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now_ns = BEGIN_NS
        self.network = "on"
        self.truth: dict[int, int] = {}
        self.stored: dict[int, set[tuple[int, float]]] = {}
        self.boots = 0
        self._boot(0, 0.0)

    # --- the machine -----------------------------------------------------------------------------------------------------

    def _boot(self, system_error_ns: int, ppm: float) -> None:
        self.boots += 1
        self._began_ns, self._rate = self.now_ns, 1 + ppm * 1e-6
        self._system_ns = system_error_ns + self.now_ns
        boot = f"boot-{self.boots}"
        self.clock = Clock(self.folder / "boots.json", boot, lambda: self._system_ns, self.monotonic_ns)
        self.spool = Spool(self.folder / "spool", boot)
        self.clock.began(self.spool.counts().made + 1)
        self.clock.save()
        pending = PendingManifests(self.folder / "pending", self.folder / "runs")
        self.exporter = Batches(self.spool, pending, "probe-1", self.clock, self._ask, lambda: self.now_ns / S)

    def monotonic_ns(self) -> int:
        return int((self.now_ns - self._began_ns) * self._rate)

    def reboot(self, off_s: float, system_error_ns: int, ppm: float) -> None:
        self.spool.close()  # what a power cut does to the spool is tests/unit/collector/spool's; boots.json is as it was last written
        self.now_ns += int(off_s * S)
        self._boot(system_error_ns, ppm)

    def step(self, by_ns: int) -> None:
        self._system_ns += by_ns
        assert self.clock.observe() == (by_ns or None)

    def says(self, off: float, error_ms: float, lie_ns: int = 0) -> None:
        """A source vouches: off by ``off`` (-1 to 1) of its error, and by ``lie_ns``."""
        error_ns = int(error_ms * 1e6)
        mono = self.monotonic_ns()
        self.clock.take(Reading("chrony", mono, self.now_ns - mono + int(off * error_ns) + lie_ns, error_ns))
        self.clock.save()

    def run(self, seconds: int) -> None:
        """Records and attempts to send."""
        for _ in range(4):
            self.now_ns += seconds * S // 4
            self.clock.observe()
            mono = self.monotonic_ns()
            first = self.spool.counts().made + 1
            self.spool.append([Record.make("radio", {"path": "a"}, {"eci": n}, mono - n) for n in range(3)])
            self.truth |= {first + n: self.now_ns - n for n in range(3)}
            self.send()

    def send(self) -> None:
        try:
            while self.exporter.step():
                pass
        except Later:
            pass
        self.spool.flush()

    # --- the other side --------------------------------------------------------------------------------------------------

    def _ask(self, method: str, url: str, content: bytes, _headers: dict[str, str]) -> Answer:
        if self.network == "off":
            raise Later("no path works", 1.0)
        date_s = float(self.now_ns // S)
        if method == "GET":
            return Answer(200, {"ok": True}, None, date_s)
        assert url == "/v1/records"
        sifted = validate_batch(gzip.decompress(content).decode(), "probe-1", TimeWindow.at(self.now_ns, 600.0, None))
        for line in sifted.lines:
            point = parse(line)
            assert point.utc_ns is not None
            stated = float(point.fields.get("utc_error_ms", 100.0))
            self.stored.setdefault(int(point.fields["seq"]), set()).add((point.utc_ns, stated))
        if self.network == "deaf":  # stored, and the answer lost
            raise Later("timeout", 1.0)
        rejected = [{"line": n, "reason": why} for n, why in sifted.rejected]
        return Answer(200, {"accepted": len(sifted.lines), "rejected": rejected}, None, date_s)

    def quarantined(self) -> dict[int, str]:
        file = self.folder / "spool" / "quarantine" / "rejected.jsonl"
        rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return {row["seq"]: row["reason"] for row in rows}
