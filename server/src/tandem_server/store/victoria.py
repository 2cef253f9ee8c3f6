"""Client of a single-node VictoriaMetrics, which says 204 to lines that it drops: here a line counts as stored only when that was verified.

A write is brought onto the disk by a snapshot; then one number of each record is read back. Its own counts of what it dropped
would be cheaper,
but they are told a second late. Before the first write, and again after each failure, the server's settings are checked: duplicates must be
made one, and its retention must not be shorter than ours.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from tandem.schema.line_protocol import parse
from tandem_server.store.http import Link
from tandem_server.store.kinds import LinesRefused, QueryError, Rejected, StoreDown
from tandem_server.store.series import Series
from tandem_server.store.victoria_lines import Stored, Texts, series_and_ms, stored

_APART_MS = 60_000
"""Records further apart are asked for one by one: a backlog must not make a question about all the time between."""
_FLAG = re.compile(r'^-(dedup\.minScrapeInterval|retentionPeriod)="([^"]*)"$', re.MULTILINE)
_DAYS = {"": 30.0, "h": 1 / 24, "d": 1.0, "w": 7.0, "y": 365.0}
_FOR_EVER_DAYS = 36_500


class Victoria:
    """One VictoriaMetrics at ``url``. ``database`` becomes the label ``db``. ``texts``: see ``victoria_lines``."""

    def __init__(
        self,
        url: str,
        database: str,
        texts: Texts,
        retention_days: int | None,
        login: tuple[str, str] | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        headers = {}
        if login is not None:
            headers["Authorization"] = "Basic " + base64.b64encode(":".join(login).encode()).decode()
        self._link = Link(url, headers, timeout_s, 8428)
        self.url, self.database, self._texts, self._retention_days = self._link.url, database, texts, retention_days
        self._write_path = "/write?" + urlencode({"db": database, "precision": "ms"})
        self._fit = False

    def ping(self) -> str:
        """StoreDown when it does not answer, or is not set up as needed."""
        status, _, body = self._link.request("GET", "/health")
        if status != 200:
            raise StoreDown(f"{self.url}: health answered {status}")
        self._check_settings()
        return body.decode(errors="replace").strip()

    def write(self, lines: list[str], *, most_requests: int | None = None) -> list[Rejected]:  # noqa: ARG002  it needs no search
        """See ``SeriesStore``."""
        if not lines:
            return []
        rejected, kept = self._fitting(lines)
        try:
            if not self._fit:
                self._check_settings()
                self._fit = True
            if kept:
                self._send([line for one in kept.values() for line in one.lines])
                self._keep()
                rejected += [Rejected(i, "VictoriaMetrics dropped it (see its log)") for i in self._absent(kept)]
        except StoreDown:
            self._fit = False
            raise
        return sorted(rejected, key=lambda one: one.index)

    def query(self, influxql: str, params: dict[str, Any] | None = None) -> list[Series]:  # noqa: ARG002  (the interface's)
        """QueryError always: it has no InfluxQL."""
        raise QueryError(
            "VictoriaMetrics has no InfluxQL: ledger and report need an InfluxDB ([store] kind private, running or influxdb2)"
        )

    def parts(self, influxql: str, params: dict[str, Any] | None = None) -> Iterator[Series]:
        """QueryError always."""
        return iter(self.query(influxql, params))

    def measurements_of(self, probe: str) -> int:
        """See ``SeriesStore``: names of series."""
        told = json.loads(self._posted("/api/v1/series", {"match[]": self._all_of(probe), "start": "0"}, 200))
        return len({one["__name__"] for one in told["data"]})

    def erase(self, probe: str) -> None:
        """See ``SeriesStore``. Its files lose the bytes when it merges them, by itself."""
        self._posted("/api/v1/admin/tsdb/delete_series", {"match[]": self._all_of(probe)}, 204)

    def _all_of(self, probe: str) -> str:
        return f"{{db={json.dumps(self.database)},probe={json.dumps(probe)}}}"

    def _posted(self, path: str, form: dict[str, str], good: int) -> bytes:
        content_type = {"Content-Type": "application/x-www-form-urlencoded"}
        status, _, body = self._link.request("POST", path, urlencode(form).encode(), content_type)
        if status != good:
            raise StoreDown(f"{self.url}: {path} answered {status}: {body[:200].decode(errors='replace').strip()}")
        return body

    def close(self) -> None:
        """Close the connections kept alive; the client can be used again."""
        self._link.close()

    def _fitting(self, lines: list[str]) -> tuple[list[Rejected], dict[int, Stored]]:
        """What it can hold, by index. Of two records of one series in one millisecond it would keep one: then the second is told."""
        rejected: list[Rejected] = []
        kept: dict[int, Stored] = {}
        seen: dict[tuple[object, ...], str] = {}
        for i, line in enumerate(lines):
            form = stored(line, self.database, self._texts)
            if form is None:
                rejected.append(Rejected(i, "no number or no time, and VictoriaMetrics holds numbers only"))
            elif seen.setdefault(series_and_ms(parse(line)), line) != line:
                rejected.append(
                    Rejected(i, "another record of this series is in the same millisecond: VictoriaMetrics keeps one")
                )
            else:
                kept[i] = form
        return rejected, kept

    def _check_settings(self) -> None:
        status, _, body = self._link.request("GET", "/flags")
        flags = dict(_FLAG.findall(body.decode(errors="replace")))
        if status != 200:
            raise StoreDown(
                f"{self.url}: /flags answered {status}: no single-node VictoriaMetrics that tells its settings"
            )
        if flags.get("dedup.minScrapeInterval") != "1ms":
            raise StoreDown(
                f"{self.url}: would keep what is sent twice; hint: start it with -dedup.minScrapeInterval=1ms"
            )
        needed = _FOR_EVER_DAYS if self._retention_days is None else self._retention_days
        kept = flags.get("retentionPeriod", "1")  # those that were not set are not told; a month is its default
        if _days(kept) < needed:
            mend = f"start it with -retentionPeriod={needed}d, or set [store] retention_days"
            raise StoreDown(f"{self.url}: keeps less than {needed} days ({kept}); hint: {mend}")

    def _send(self, lines: list[str]) -> None:
        body, headers = "\n".join(lines).encode(), {"Content-Type": "text/plain; charset=utf-8"}
        if not self._link.near:
            body, headers["Content-Encoding"] = gzip.compress(body, compresslevel=1), "gzip"
        status, _, answer = self._link.request("POST", self._write_path, body, headers)
        if status != 204:
            kind = LinesRefused if status == 400 else StoreDown
            raise kind(f"{self.url}: write answered {status}: {answer[:200].decode(errors='replace').strip()}")

    def _keep(self) -> None:
        """What was sent goes from memory into files. The server does so by itself within seconds, and loses what it told 204 when
        it is killed
        before (seen with 1.79; ``force_flush`` only makes it readable). A snapshot has to have all: so one is made, and deleted."""
        made = self._told("/snapshot/create")
        self._told("/snapshot/delete?" + urlencode({"snapshot": str(made.get("snapshot"))}))

    def _told(self, path: str) -> dict[str, object]:
        status, _, body = self._link.request("GET", path)
        try:
            told = json.loads(body)
        except ValueError:
            told = None
        if status != 200 or not isinstance(told, dict) or told.get("status") != "ok":
            raise StoreDown(f"{self.url}: {path} answered {status}: {body[:200].decode(errors='replace').strip()}")
        return told

    def _absent(self, kept: dict[int, Stored]) -> list[int]:
        """Indices of those that cannot be read back."""
        absent: list[int] = []
        near: list[tuple[int, Stored]] = []
        for i, one in sorted(kept.items(), key=lambda item: item[1].utc_ms):
            if near and one.utc_ms - near[-1][1].utc_ms > _APART_MS:
                absent += self._absent_of(near)
                near = []
            near.append((i, one))
        return absent + self._absent_of(near)

    def _absent_of(self, near: list[tuple[int, Stored]]) -> list[int]:
        names = "|".join(sorted({one.name for _, one in near}))
        probes = "|".join(sorted({re.escape(one.labels.get("probe", "")) for _, one in near}))
        form = {
            "match[]": f"{{__name__=~{json.dumps(names)},probe=~{json.dumps(probes)}}}",
            "start": f"{near[0][1].utc_ms / 1000:.3f}",
            "end": f"{near[-1][1].utc_ms / 1000:.3f}",
        }
        held = set()
        for line in self._posted("/api/v1/export", form, 200).splitlines():
            series = json.loads(line)
            labels = frozenset(series["metric"].items())
            held |= {(labels, at) for at in series["timestamps"]}
        return [
            i for i, one in near if (frozenset({**one.labels, "__name__": one.name}.items()), one.utc_ms) not in held
        ]


def _days(period: str) -> float:
    """Of ``-retentionPeriod``: a number of months (31 days, counted as 30 here), or with h, d, w or y."""
    read = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([hdwy]?)", period)
    return float(read[1]) * _DAYS[read[2]] if read else 0.0
