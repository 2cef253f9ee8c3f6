"""The survey as an experiment: batch by batch, resolve over each path, ping over each path, write down; tables at the end."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any, TypeVar

from tandem.experiment.base import LATE, STOPPED, Outcome, Output, Span, Stop, at_once, phase
from tandem.experiment.parameters import (
    CommonParameters,
    Parameter,
    ParameterError,
    parameter,
    parameters_of,
    read_request,
)
from tandem.experiment.reachability.files import (
    DenyList,
    Journal,
    ListError,
    Name,
    NameList,
    Row,
    read_deny,
    read_names,
    write_table,
)
from tandem.experiment.reachability.pinging import Pinged, Pinger
from tandem.experiment.results import InterfaceCounters, distribution, environment, share
from tandem.mptcp import dns, sockets
from tandem.mptcp import names as path_names
from tandem.mptcp.dns import Answer, Asker
from tandem.mptcp.names import address_of
from tandem.schema.manifest import Failure

# ---------------------------------------------------------------------------------------------------------------------
# What the rows of a survey come to: resolutions, overlap of addresses, unresponsive shares, round-trip times by way.
# Pure.
#
# A *way* is a pair of paths, written as the paper writes it: the path that pings, then the path that resolved. With
# Wi-Fi ``W`` and LTE ``L``, ``WL`` is an address that LTE's resolvers gave, pinged over Wi-Fi. Here the names of the
# paths are joined by ``/``.


def summary(rows: Sequence[Row], paths: Sequence[str]) -> dict[str, Any]:
    """All tables. Absent figures are None: a share of nothing, a mean of no value."""
    allowed = [row for row in rows if not row.get("denied")]
    ways = {f"{ping}/{resolved}": (ping, resolved) for ping, resolved in product(paths, paths)}
    by_name = {way: _name_rtts(allowed, *pair) for way, pair in ways.items()}
    return {
        "names": {"done": len(rows), "denied": len(rows) - len(allowed)},
        "resolution": {path: _resolution(allowed, path) for path in paths},
        "overlap": [_overlap(allowed, one, other) for one, other in combinations(paths, 2)],
        "ways": [_way(allowed, way, *pair, by_name[way]) for way, pair in ways.items()],
        "comparison": [_comparison(one, other, by_name[one], by_name[other]) for one, other in combinations(ways, 2)],
    }


def addresses_of(row: Row, path: str) -> list[str]:
    """What ``path``'s resolvers gave for the name, both families, each once."""
    answers = row.get("resolved", {}).get(path, {})
    return list(dict.fromkeys(a for answer in answers.values() for a in answer["addresses"]))


def _resolution(rows: Sequence[Row], path: str) -> dict[str, Any]:
    statuses = {kind: Counter[str]() for kind in ("A", "AAAA")}
    resolved, with_kind, refused, times = 0, Counter[str](), Counter[str](), list[float]()
    for row in rows:
        found = addresses_of(row, path)
        resolved += bool(found)
        refused.update(row["refused"][a] for a in found if a in row.get("refused", {}))
        for kind, answer in row["resolved"].get(path, {}).items():
            status = "no address" if answer["status"] == "ok" and not answer["addresses"] else answer["status"]
            statuses[kind][status] += 1
            with_kind[kind] += bool(answer["addresses"])
            if answer["ms"] is not None:
                times.append(answer["ms"])
    return {
        "names": len(rows),
        "resolved": resolved,
        "resolved_a": with_kind["A"],
        "resolved_aaaa": with_kind["AAAA"],
        "addresses": len({a for row in rows for a in addresses_of(row, path)}),
        "addresses_not_pinged": dict(refused),
        "status_a": dict(statuses["A"]),
        "status_aaaa": dict(statuses["AAAA"]),
        "answer_ms": distribution(times),
    }


def _overlap(rows: Sequence[Row], one: str, other: str) -> dict[str, Any]:
    """``share``: of all addresses that either gave, those that both gave. ``names_…``: of the names that both resolved."""
    first = {a for row in rows for a in addresses_of(row, one)}
    second = {a for row in rows for a in addresses_of(row, other)}
    sets = [(set(addresses_of(row, one)), set(addresses_of(row, other))) for row in rows]
    both = [(a, b) for a, b in sets if a and b]
    return {
        "paths": [one, other],
        "addresses_either": len(first | second),
        "addresses_both": len(first & second),
        "share": share(len(first & second), len(first | second)),
        "names_both": len(both),
        "names_only_first": sum(bool(a and not b) for a, b in sets),
        "names_only_second": sum(bool(b and not a) for a, b in sets),
        "names_same_share": share(sum(a == b for a, b in both), len(both)),
        "names_sharing_share": share(sum(bool(a & b) for a, b in both), len(both)),
    }


def _way(rows: Sequence[Row], way: str, ping: str, resolved: str, names: dict[str, float]) -> dict[str, Any]:
    """Addresses count once for each name that has them. Those to which nothing could be sent count in ``not_sent`` only."""
    tested = [p for row in rows for p in _pinged(row, ping, resolved)]
    sent = [p for p in tested if p["sent"]]
    silent = sum(not p["answered"] and not p["resets"] for p in sent)
    per_name = [[p for p in _pinged(row, ping, resolved) if p["sent"]] for row in rows]
    names_sent = [pinged for pinged in per_name if pinged]
    names_silent = sum(not any(p["answered"] or p["resets"] for p in pinged) for pinged in names_sent)
    means = [sum(p["rtt_ms"]) / len(p["rtt_ms"]) for p in sent if p["rtt_ms"]]
    return {
        "way": way,
        "ping": ping,
        "resolved": resolved,
        "addresses": len(sent),
        "not_sent": len(tested) - len(sent),
        "unresponsive": silent,
        "unresponsive_share": share(silent, len(sent)),
        "only_resets": sum(bool(p["resets"] and not p["answered"]) for p in sent),
        "pings": sum(p["sent"] for p in sent),
        "pings_unanswered_share": share(
            sum(p["sent"] - p["answered"] - p["resets"] for p in sent), sum(p["sent"] for p in sent)
        ),
        "names": len(names_sent),
        "names_unresponsive_share": share(names_silent, len(names_sent)),
        "address_rtt_ms": distribution(means),
        "name_rtt_ms": distribution(list(names.values())),
    }


def _pinged(row: Row, ping: str, resolved: str) -> list[dict[str, Any]]:
    pings = row.get("pings", {})
    return [pings[a][ping] for a in addresses_of(row, resolved) if ping in pings.get(a, {})]


def _name_rtts(rows: Sequence[Row], ping: str, resolved: str) -> dict[str, float]:
    """Of each name: the mean over its addresses of the mean over their pings."""
    found = {}
    for row in rows:
        means = [sum(p["rtt_ms"]) / len(p["rtt_ms"]) for p in _pinged(row, ping, resolved) if p["rtt_ms"]]
        if means:
            found[row["name"]] = sum(means) / len(means)
    return found


def _comparison(one: str, other: str, first: dict[str, float], second: dict[str, float]) -> dict[str, Any]:
    """Name by name, of those that have a time both ways. Positive differences: the second way is slower."""
    common = first.keys() & second.keys()
    differences = [second[name] - first[name] for name in common]
    return {
        "ways": [one, other],
        "names": len(common),
        "second_slower_share": share(sum(d > 0 for d in differences), len(differences)),
        "difference_ms": distribution(differences),
    }


# ---------------------------------------------------------------------------------------------------------------------
# The experiment.


@dataclass(frozen=True, slots=True)
class Request(CommonParameters):
    """A survey, checked. ``resolvers``: as given, by path."""

    # fmt: off
    names: NameList = parameter("file of names, rank,domain a line (Tranco's format)", required=True, file=True)
    list_id: str | None = parameter("the list's own id, stored with the result")
    first: int = parameter("how many names, from the top", "names", default=10_000, minimum=1, maximum=1e6)
    folder: Path = parameter("where journal and rows go; a survey in it is resumed", required=True, file=True)
    deny: DenyList = parameter("file of domains and networks that are left alone", file=True)
    resolvers: dict[str, tuple[str, ...]] = parameter("path: list of addresses; else they are found", default=None)
    dns_port: int = parameter("of the resolvers", "port", default=53, minimum=1, maximum=65535)
    families: str = parameter("which addresses are requested", default="46", choices=("4", "6", "46"))
    addresses: int = parameter("of each name, family and path: pinged at most", "addresses", default=16, minimum=1, maximum=64)
    port: int = parameter("that is pinged", "port", default=443, minimum=1, maximum=65535)
    pings: int = parameter("of each address over each path", "pings", default=10, minimum=1, maximum=100)
    ping_hz: float = parameter("pings a second on each path", "1/s", default=50.0, minimum=0.1, maximum=2000)
    ping_timeout_s: float = parameter("for an answer to a ping", "s", default=3.0, minimum=0.1, maximum=60)
    question_hz: float = parameter("DNS questions a second on each path", "1/s", default=100.0, minimum=0.1, maximum=2000)
    dns_timeout_s: float = parameter("for each try of a question", "s", default=2.0, minimum=0.1, maximum=60)
    dns_tries: int = parameter("of a question, the resolvers in turn", "tries", default=3, minimum=1, maximum=10)
    batch: int = parameter("names resolved, then pinged, then written down", "names", default=100, minimum=1, maximum=10_000)
    seed: int = parameter("of the random orders", "seed", default=1, minimum=0, maximum=2**53)
    deadline_s: float = parameter("the whole run; the journal keeps what is done", "s", default=86_400.0, minimum=1, maximum=604_800)
    # fmt: on

    @property
    def head(self) -> dict[str, Any]:
        """What makes two parts one survey."""
        kept = ("families", "addresses", "port", "pings", "seed")
        return {
            "list": self.names.sha256,
            "names": len(self.names.names),
            "paths": sorted(p.name for p in self.paths),
            **{key: getattr(self, key) for key in kept},
        }


T = TypeVar("T")


def read(p: dict[str, Any]) -> Request:
    """From parameters that are checked one by one; ParameterError for files that cannot be read and what contradicts itself."""
    return read_request(
        Request,
        p,
        resolvers=read_resolvers(p["resolvers"] or {}, [path["name"] for path in p["paths"]]),
        names=_list("names", p["names"], lambda raw: read_names(raw, p["first"])),
        deny=_list("deny", p["deny"], lambda raw: read_deny(raw.decode())) if p["deny"] else DenyList(),
        folder=Path(p["folder"]),
    )


def _list(parameter: str, file: str, parse: Callable[[bytes], T]) -> T:
    try:
        return parse(Path(file).read_bytes())
    except OSError as error:
        raise ParameterError(f"parameter {parameter!r}: {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ParameterError(f"parameter {parameter!r}: {file}: not UTF-8") from error
    except ListError as error:
        raise ParameterError(f"parameter {parameter!r}: {file}: {error}") from error


def read_resolvers(given: dict[str, Any], paths: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The parameter ``resolvers``: path → list of addresses; ParameterError."""
    found = {}
    for path, addresses in given.items():
        if path not in paths:
            raise ParameterError(f"parameter 'resolvers': {path!r} is none of the paths {', '.join(paths)}")
        if not isinstance(addresses, list) or not addresses:
            raise ParameterError(f"parameter 'resolvers': {path}: a list of addresses is needed, as [\"192.0.2.53\"]")
        for address in addresses:
            if not isinstance(address, str) or address_of(address) is None:
                raise ParameterError(f"parameter 'resolvers': {path}: {address!r} is no IP address")
        found[path] = tuple(addresses)
    return found


_KINDS = {"4": (dns.A,), "6": (dns.AAAA,), "46": (dns.A, dns.AAAA)}
_WORDS = {dns.A: "A", dns.AAAA: "AAAA"}


class Reachability:
    """Names resolved over each path, and every address pinged over each path by TCP."""

    name = "reachability"
    version = 1
    parameters: tuple[Parameter, ...] = parameters_of(Request)
    phases = (("resolve", "a batch of names over each path"), ("ping", "the batch's addresses over each path"))
    results: tuple[Parameter, ...] = (
        Parameter("names", "object", "how many are done and denied"),
        Parameter("resolution", "object", "by path: names resolved, addresses, statuses, time to the answer"),
        Parameter("overlap", "list", "by pair of paths: addresses that both resolvers gave"),
        Parameter("ways", "list", "by way (pinging path/resolving path): unresponsive share, round-trip times"),
        Parameter("comparison", "list", "by pair of ways, name by name: which is slower, by how much"),
        Parameter("resolvers", "object", "by path: addresses asked, and how they were found"),
        Parameter("list", "object", "the list of names: id, sha256, names"),
        Parameter("resumed_names", "int", "done by an earlier part of the same survey", "names"),
        Parameter("syn_late_ms_max", "object", "by path: how late a ping went out at the worst"),
        Parameter("duration_s", "float", "of this part", "s"),
        Parameter("bytes_by_path", "object", "this part: payload of DNS; pings have none"),
        Parameter("interface_bytes_by_path", "object", "this part: all that the interface counted, headers and other traffic too"),
        Parameter("files", "object", "journal and rows, in the folder asked for"),
    )  # fmt: skip

    def run(self, parameters: dict[str, Any], output: Output, stop: Stop) -> Outcome:
        request = read(parameters)
        journal = Journal(request.folder, request.head)
        try:
            return _Survey(request, journal, output, stop).run()
        finally:
            journal.close()


class _Survey:
    """One part of a survey: from its start, or from where it was cut off."""

    def __init__(self, request: Request, journal: Journal, output: Output, stop: Stop) -> None:
        r = request
        self._r, self._journal, self._output, self._stop = r, journal, output, stop
        self._span = Span(r.deadline_s, stop)
        self._rows = list(journal.rows)
        self._resumed = len(self._rows)
        self._interfaces = {p.name: p.interface for p in r.paths}
        self._resolvers = {
            name: path_names.Resolvers(r.resolvers[name], "parameter")
            if name in r.resolvers
            else path_names.find(interface)
            for name, interface in self._interfaces.items()
        }
        timing = (r.question_hz, r.dns_timeout_s, r.dns_tries, r.dns_port)
        self._askers = {
            name: Asker(interface, self._resolvers[name].addresses, *timing)
            for name, interface in self._interfaces.items()
        }
        self._pingers = {
            name: Pinger(interface, r.port, r.ping_hz, r.ping_timeout_s) for name, interface in self._interfaces.items()
        }
        self._counters = InterfaceCounters(r.paths)

    def run(self) -> Outcome:
        done = {row["name"] for row in self._rows}
        names = list(self._r.names.names)
        random.Random(self._r.seed).shuffle(names)
        size = self._r.batch
        batches = [names[i : i + size] for i in range(0, len(names), size)]
        for number, batch in enumerate(batches, start=1):
            left = [name for name in batch if name.name not in done]
            if not left:
                continue
            rows = self._batch(left, number, len(batches))
            if self._span.over():
                break  # a part of a batch is done again
            self._journal.add(rows)
            self._rows += rows
        return self._outcome()

    def _batch(self, batch: Sequence[Name], number: int, of: int) -> list[Row]:
        allowed = [name for name in batch if not self._r.deny.denies_name(name.name)]
        phase(self._output, "resolve", 2 * number - 1, 2 * of)
        answers: dict[str, dict[tuple[str, int], Answer]] = {path: {} for path in self._askers}

        def ask(path: str) -> None:
            kinds = _KINDS[self._r.families]
            answers[path] = self._askers[path].ask([n.name for n in allowed], kinds, self._span.over)

        at_once(self._askers, ask)
        rows = [self._row(name, answers) for name in allowed]
        addresses = sorted({a for row in rows for a in row["pings"]})
        phase(self._output, "ping", 2 * number, 2 * of)
        pinged: dict[str, dict[str, Pinged]] = {path: {} for path in self._pingers}

        def ping(path: str) -> None:
            order = random.Random(f"{self._r.seed} {number} {path}")
            usable = _usable(addresses, self._interfaces[path])
            rounds = [order.sample(usable, len(usable)) for _ in range(self._r.pings)]
            self._pingers[path].ping((a for one in rounds for a in one), pinged[path], self._span.over)

        at_once(self._pingers, ping)
        for row in rows:
            for address, by_path in row["pings"].items():
                for path, found in pinged.items():
                    counts = asdict(found.get(address, Pinged(not_sent=self._r.pings)))
                    by_path[path] = {**counts, "rtt_ms": [round(rtt, 3) for rtt in counts["rtt_ms"]]}
        denied = [{"rank": n.rank, "name": n.name, "denied": True} for n in batch if n not in allowed]
        return rows + denied

    def _row(self, name: Name, answers: dict[str, dict[tuple[str, int], Answer]]) -> Row:
        """The name as resolved, with room for the pings of each address that may be pinged."""
        resolved: dict[str, Row] = {}
        refused: dict[str, str] = {}
        pings: dict[str, Row] = {}
        for path, found in answers.items():
            resolved[path] = {}
            for kind in _KINDS[self._r.families]:
                answer = found.get((name.name, kind), Answer("not sent"))
                resolved[path][_WORDS[kind]] = {
                    "status": answer.status,
                    "addresses": list(answer.addresses),
                    "ms": None if answer.ms is None else round(answer.ms, 3),
                    "tries": answer.tries,
                    "truncated": answer.truncated,
                }
                reasons = {a: self._r.deny.why_not(a) for a in answer.addresses}
                refused.update({a: reason for a, reason in reasons.items() if reason is not None})
                allowed = [a for a, reason in reasons.items() if reason is None]
                pings.update({a: {} for a in allowed[: self._r.addresses]})
        return {"rank": name.rank, "name": name.name, "resolved": resolved, "refused": refused, "pings": pings}

    def _outcome(self) -> Outcome:
        r = self._r
        found = summary(self._rows, list(self._interfaces))
        table = write_table(r.folder, self._rows)
        result = {
            **found,
            "resolvers": {
                name: {"addresses": list(found.addresses), "source": found.source}
                for name, found in self._resolvers.items()
            },
            "list": {"id": r.list_id, "sha256": r.names.sha256, "names": len(r.names.names)},
            "resumed_names": self._resumed,
            "syn_late_ms_max": {name: round(pinger.late_ms_max, 3) for name, pinger in self._pingers.items()},
            "duration_s": self._span.duration_s,
            "bytes_by_path": {
                name: {"received": asker.received_bytes, "sent": asker.sent_bytes}
                for name, asker in self._askers.items()
            },
            "interface_bytes_by_path": self._counters.by_path(),
            "files": {"journal": self._journal.file.name, "rows": table.name},
        }
        failure = None
        if len(self._rows) < len(r.names.names):
            failure = STOPPED if self._stop.requested else LATE
        elif not any(one["resolved"] for one in found["resolution"].values()):
            failure = Failure(reason="no name was resolved over any path", retry=True)
        return Outcome(result, failure, environment(r))


def _usable(addresses: Sequence[str], interface: str) -> list[str]:
    """Those of a family that the path has; of the others nothing is sent."""
    own = sockets.interface_addresses(interface)
    has4, has6 = any(":" not in a for a in own), any(":" in a for a in own)
    return [a for a in addresses if (has6 if ":" in a else has4)]


EXPERIMENT = Reachability()
