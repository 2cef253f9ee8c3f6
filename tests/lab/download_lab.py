"""Downloads over the lab's two paths, from an endpoint that may misbehave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.experiment_process import Run, parameters, server_of
from support.scripted_endpoint import IPPROTO_MPTCP, Behaviour, Endpoint
from support.two_paths import Lab, lab, up

SIZE = 1_500_000


class DownloadLab:
    """The lab with both paths up. ``endpoint``: the last one that was asked, in the server's namespace."""

    def __init__(self, made: Lab, folder: Path) -> None:
        self.lab, self.paths, self._folder = made, up(made), folder
        self.endpoints: list[Endpoint] = []

    @property
    def endpoint(self) -> Endpoint:
        return self.endpoints[-1]

    def start(
        self,
        kind: str,
        path: str,
        behaviour: Behaviour | None = None,
        protocol: int = IPPROTO_MPTCP,
        through: Sequence[str] = (),
        **more: Any,
    ) -> Run:
        """``through``: a command in front of the experiment."""
        self.endpoints.append(self.lab.server.inside(lambda: Endpoint(behaviour or Behaviour(), protocol)))
        amount = {} if "seconds" in more else {"bytes": SIZE}
        wanted = parameters(server_of(self._folder, self.endpoint), kind=kind, path=path, **{**amount, **more})
        return Run("download", wanted, [*self.lab.probe.enter, *through])

    def strip(self, interface: str) -> None:
        """The options of Multipath TCP are taken from SYNs that come in over ``interface`` of the server."""
        self.lab.server.run("nft 'add table ip t; add chain ip t c { type filter hook prerouting priority -300; }'")
        self.lab.server.run(f"nft 'add rule ip t c iifname {interface} tcp flags syn reset tcp option mptcp'")


@contextmanager
def download_lab(folder: Path) -> Iterator[DownloadLab]:
    with lab() as made:
        found = DownloadLab(made, folder)
        try:
            yield found
        finally:
            for endpoint in found.endpoints:
                endpoint.close()
