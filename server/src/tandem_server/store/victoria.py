"""A single-node VictoriaMetrics as the mirror of the database: every line that the database accepted goes there too (``Mirrored``).

It says 204 to lines that it drops: here a line counts as stored only when that was verified. A write is brought onto the disk by a
snapshot; then one number of each record is read back. Its own counts of what it dropped would be cheaper, but are known a second late.
Before the first write, and again after each failure, the server's settings are checked: duplicates must be made one, and its retention
must not be shorter than ours. Tested with 1.79.

It holds numbers at milliseconds: a field becomes the series ``MEASUREMENT_FIELD``, its tags labels with ``db`` = the database's name, true
and false 1 and 0. A text would become 0. So texts either go into the labels of a series of their own, ``MEASUREMENT_texts`` with the value
1, or are left out. It cannot hold a record without a number or a time, of two records of one series in one millisecond only one, and whole
numbers above 2^53 not exactly. It has no InfluxQL: whoever reads the mirror uses MetricsQL.
"""

from __future__ import annotations

import base64
import gzip
import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlencode

from tandem.schema.line_protocol import parse
from tandem_server.store.http import Link
from tandem_server.store.influx import Influx
from tandem_server.store.kinds import LinesRefused, Rejected, Series, StoreDown

Texts = Literal["labels", "dropped"]
_LOG = logging.getLogger("tandem.store")
_LABEL_CHARACTERS = 4096
_APART_MS = 60_000
"""Records further apart are read back one by one: a backlog must not make a query over all the time between."""
_FLAG = re.compile(r'^-(dedup\.minScrapeInterval|retentionPeriod)="([^"]*)"$', re.MULTILINE)
_DAYS = {"": 30.0, "h": 1 / 24, "d": 1.0, "w": 7.0, "y": 365.0}
_FOR_EVER_DAYS = 36_500


class Mirrored:
    """A ``SeriesStore``: ``database``, and in ``mirror`` what it accepted. On return from ``write`` the lines are in both; while the mirror
    is away nothing is acknowledged, as when the database is: writing again does no harm. What the mirror cannot hold is logged."""

    def __init__(self, database: Influx, mirror: Victoria) -> None:
        self._database, self._mirror = database, mirror

    def ping(self) -> str:
        """See ``SeriesStore``: of the database."""
        self._mirror.ping()
        return self._database.ping()

    def write(self, lines: list[str], *, most_requests: int | None = None) -> list[Rejected]:
        """See ``SeriesStore``: those that the database rejects."""
        rejected = self._database.write(lines, most_requests=most_requests)
        gone = {one.index for one in rejected}
        accepted = [line for i, line in enumerate(lines) if i not in gone]
        for one in self._mirror.write(accepted):
            _LOG.warning("not in the mirror: %s: %s", accepted[one.index][:200], one.reason)
        return rejected

    def query(self, influxql: str, params: dict[str, Any] | None = None) -> list[Series]:
        """See ``SeriesStore``."""
        return self._database.query(influxql, params)

    def parts(self, influxql: str, params: dict[str, Any] | None = None) -> Iterator[Series]:
        """See ``SeriesStore``."""
        return self._database.parts(influxql, params)

    def measurements_of(self, probe: str) -> int:
        """See ``SeriesStore``: in both together."""
        return self._database.measurements_of(probe) + self._mirror.measurements_of(probe)

    def erase(self, probe: str) -> None:
        """See ``SeriesStore``: in both."""
        self._mirror.erase(probe)
        self._database.erase(probe)

    def close(self) -> None:
        """See ``SeriesStore``."""
        self._mirror.close()
        self._database.close()


class Victoria:
    """One VictoriaMetrics at ``url``. ``database`` becomes the label ``db``."""

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

    def write(self, lines: list[str]) -> list[Rejected]:
        """As ``SeriesStore.write``: on return every line is on its disk, or is named with the reason. StoreDown."""
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
                absent = self._absent(kept)
                if absent:
                    # Or not readable yet: on a busy machine a new series is in no index that is searched before this.
                    self._link.request("GET", "/internal/force_flush")
                    absent = self._absent({i: kept[i] for i in absent})
                rejected += [Rejected(i, "VictoriaMetrics dropped it (see its log)") for i in absent]
        except StoreDown:
            self._fit = False
            raise
        return sorted(rejected, key=lambda one: one.index)

    def measurements_of(self, probe: str) -> int:
        """How many names of series there are of a probe, of any age. StoreDown."""
        found = json.loads(self._posted("/api/v1/series", {"match[]": self._all_of(probe), "start": "0"}, 200))
        return len({one["__name__"] for one in found["data"]})

    def erase(self, probe: str) -> None:
        """Take out all series of a probe. Its files lose the bytes when it merges them, by itself. StoreDown."""
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
        """What it can hold, by index. Of two records of one series in one millisecond it would keep one: then the second is named."""
        rejected: list[Rejected] = []
        kept: dict[int, Stored] = {}
        seen: dict[tuple[object, ...], str] = {}
        for i, line in enumerate(lines):
            form = stored(line, self.database, self._texts)
            if form is None:
                rejected.append(Rejected(i, "no number or no time, and VictoriaMetrics holds numbers only"))
            elif seen.setdefault(form.identity, line) != line:
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
                f"{self.url}: /flags answered {status}: no single-node VictoriaMetrics that reports its settings"
            )
        if flags.get("dedup.minScrapeInterval") != "1ms":
            raise StoreDown(
                f"{self.url}: would keep what is sent twice; hint: start it with -dedup.minScrapeInterval=1ms"
            )
        needed = _FOR_EVER_DAYS if self._retention_days is None else self._retention_days
        kept = flags.get("retentionPeriod", "1")  # those that were not set are not reported; a month is its default
        if _days(kept) < needed:
            hint = f"start it with -retentionPeriod={needed}d, or set [store] retention_days"
            raise StoreDown(f"{self.url}: keeps less than {needed} days ({kept}); hint: {hint}")

    def _send(self, lines: list[str]) -> None:
        body, headers = "\n".join(lines).encode(), {"Content-Type": "text/plain; charset=utf-8"}
        if not self._link.near:
            body, headers["Content-Encoding"] = gzip.compress(body, compresslevel=1), "gzip"
        status, _, answer = self._link.request("POST", self._write_path, body, headers)
        if status != 204:
            kind = LinesRefused if status == 400 else StoreDown
            raise kind(f"{self.url}: write answered {status}: {answer[:200].decode(errors='replace').strip()}")

    def _keep(self) -> None:
        """What was sent goes from memory into files. The server does so by itself within seconds, and loses what it acknowledged when
        it is killed before (seen with 1.79; ``force_flush`` only makes it readable). A snapshot has to have all: so one is made."""
        made = self._requested("/snapshot/create")
        self._requested("/snapshot/delete?" + urlencode({"snapshot": str(made.get("snapshot"))}))

    def _requested(self, path: str) -> dict[str, object]:
        status, _, body = self._link.request("GET", path)
        try:
            answer = json.loads(body)
        except ValueError:
            answer = None
        if status != 200 or not isinstance(answer, dict) or answer.get("status") != "ok":
            raise StoreDown(f"{self.url}: {path} answered {status}: {body[:200].decode(errors='replace').strip()}")
        return answer

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


@dataclass(frozen=True, slots=True)
class Stored:
    """One line as VictoriaMetrics takes it. ``lines``: one, or two with its texts; ``name`` and ``labels`` of the series of one of
    its numbers; ``identity``: what tells records apart there, since one series has one value a millisecond."""

    lines: tuple[str, ...]
    name: str
    labels: dict[str, str]
    utc_ms: int
    identity: tuple[object, ...]


def stored(line: str, database: str, texts: Texts) -> Stored | None:
    """None for a line without a number or a time, which it cannot hold."""
    point = parse(line)
    numbers = {name: value for name, value in point.fields.items() if not isinstance(value, str)}
    if not numbers or point.utc_ns is None:
        return None
    utc_ms = point.utc_ns // 1_000_000
    lines = [_line(point.measurement, point.tags, numbers, utc_ms)]
    labels = {name: _label(value) for name, value in point.fields.items() if isinstance(value, str)}
    labels = {name: value for name, value in labels.items() if value and name not in point.tags}
    if labels and texts == "labels":
        lines.append(_line(point.measurement, {**point.tags, **labels}, {"texts": 1}, utc_ms))
    name = f"{point.measurement}_{next(iter(numbers))}"
    identity = (point.measurement, frozenset(point.tags.items()), utc_ms)
    return Stored(tuple(lines), name, {**point.tags, "db": database}, utc_ms, identity)


def _line(measurement: str, tags: dict[str, str], fields: dict[str, int | float | bool], utc_ms: int) -> str:
    head = [measurement, *(f"{_escaped(name)}={_escaped(value)}" for name, value in sorted(tags.items()))]
    body = ",".join(f"{name}={_number(value)}" for name, value in fields.items())
    return f"{','.join(head)} {body} {utc_ms}"


def _number(value: int | float | bool) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return repr(value)


def _label(text: object) -> str:
    """As a label: without line breaks, without the backslash at the end that would escape what follows, of a bounded length."""
    return " ".join(str(text).split())[:_LABEL_CHARACTERS].rstrip("\\ ")


def _escaped(text: str) -> str:
    for special in ("\\", ",", "=", " "):
        text = text.replace(special, "\\" + special)
    return text
