"""The sender's figures of a download's subflows, found for ours. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tandem.experiment.control import mapping, objects, real, whole
from tandem.mptcp.series import SubflowTotal


class SenderSide:
    """The session's last answer, with our own ``totals`` in their order (the first one first)."""

    def __init__(self, answer: dict[str, Any] | None, totals: Sequence[SubflowTotal]) -> None:
        connections = objects(mapping(answer).get("connections"))
        self._rows = [row for one in connections for row in objects(one.get("subflows"))]
        self._totals = totals

    def of(self, total: SubflowTotal) -> dict[str, Any] | None:
        """The sender's figures of this subflow; None where it is not known which they are. A path's only one; else the one from our port,
        which many NATs keep; else the one that came to the same of the server's addresses, the first or another."""
        rows = [row for row in self._rows if total.name.path is not None and row.get("path") == total.name.path]
        ours = [one for one in self._totals if one.name.path == total.name.path]
        if len(rows) == 1 and len(ours) == 1:
            return rows[0]
        by_port = [
            row
            for row in rows
            if total.local_port is not None and whole(mapping(row.get("remote")).get("port")) == total.local_port
        ]
        if len(by_port) == 1:
            return by_port[0]
        first, at_first = self._totals[0].remote, self._rows[0].get("local") if self._rows else None
        if total.remote is None or not isinstance(at_first, str):
            return None
        same = [row for row in rows if (row.get("local") == at_first) == (total.remote == first)]
        twins = [one for one in ours if (one.remote == first) == (total.remote == first)]
        return same[0] if len(same) == 1 and len(twins) == 1 else None

    def rtt_ms(self, total: SubflowTotal) -> float | None:
        """Its median RTT; where it is not known which is which, that of the subflow that carried most over the path."""
        row = self.of(total)
        if row is not None:
            return real(row.get("rtt_ms_median"))
        known = [
            (carried, rtt)
            for one in self._rows
            if total.name.path is not None and one.get("path") == total.name.path
            if (rtt := real(one.get("rtt_ms_median"))) is not None
            and (carried := real(one.get("bytes_acked"))) is not None
        ]
        return max(known)[1] if known else None

    def bytes_retrans(self, total: SubflowTotal) -> int | None:
        """Bytes that the sender sent again on it."""
        row = self.of(total)
        return whole(mapping(row).get("bytes_retrans"))

    @property
    def all_bytes_retrans(self) -> int | None:
        """On all subflows; None when it does not say of each."""
        counts = [whole(row.get("bytes_retrans")) for row in self._rows]
        known = [count for count in counts if count is not None]
        return sum(known) if known and len(known) == len(counts) else None
