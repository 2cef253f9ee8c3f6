"""Which path a subflow runs over, told from its local address."""

from __future__ import annotations

from collections.abc import Sequence

from tandem.experiment.common_parameters import ProbePath
from tandem.mptcp import sockets
from tandem.mptcp.series import PathName
from tandem.mptcp.statistics import SubflowSample


class PathNames:
    """The names of ``paths``, which may be given without their addresses."""

    def __init__(self, paths: Sequence[ProbePath]) -> None:
        self._paths = paths
        self._by_address: dict[str, PathName] = {}
        for path in self._paths:
            if path.address is not None:
                self._by_address[path.address] = PathName(path.name, path.operator)

    def of(self, subflow: SubflowSample) -> PathName:
        """The path, or nothing known."""
        host = subflow.local.host if subflow.local is not None else None
        if host is None:
            return PathName(None, None)
        if host not in self._by_address:
            # not told, or changed since: a mobile network may give another address at any time
            for path in self._paths:
                for current in sockets.interface_addresses(path.interface):
                    self._by_address[current] = PathName(path.name, path.operator)
        return self._by_address.get(host, PathName(None, None))
