"""A server to which captures come, and the captures: a run of two paths, a plain one, one that is none."""

import hashlib

import pytest

from support import (
    capture_scenes,
    native,  # noqa: F401  (skips where the native pass is not built)
)
from support.captures import CLIENT, CLIENT2, pcap, token
from support.probe_runs import file_of
from support.upload_service_here import Place, offered

pq = pytest.importorskip("pyarrow.parquet", reason="no pyarrow; pip install -r requirements/dev.txt")

from tandem_server.analysis.traces.processes import analysed  # noqa: E402
from tandem_server.derived.tables import Tabling  # noqa: E402
from tandem_server.endpoint.capture import Kept  # noqa: E402

RUN = "run-0123456789ab"
NO_CAPTURE = b"no capture at all" * 9
PLAIN = pcap(capture_scenes.plain_download().packets)
BY_PATH = capture_scenes.by_path(capture_scenes.two_subflows().wire.packets)
HALVES = {f"{RUN}-{path}.pcap": pcap(packets) for path, packets in zip("ab", BY_PATH, strict=True)}
"""A connection of two subflows as a machine captures it: each interface has its own."""
A, B = HALVES
ENVIRONMENT = {
    "further": {"connection": f"{token(capture_scenes.CLIENT_KEY, 1):08x}"},
    "path_addresses": {"a": CLIENT, "b": CLIENT2},
}


class Server(Place):
    """What came, and what analyses it: in this process unless said otherwise."""

    def tabling(self, pool=None, reserve_bytes=0, tell=None):
        here = pool or (lambda batches, task: analysed(batches, task, 1, apart=False, say=print))
        return Tabling(self.registry, self.folder / "traces", lambda _: self.store, here, reserve_bytes, tell)

    def come(self, content, name, run=RUN, probe="probe-1"):
        self.received(probe, *offered(content, f"captures/{name}", run=run))

    def captures(self, content, session, run=RUN, probe="probe-1"):
        """As its endpoint does at a session's end."""
        kept = Kept(self.registry, self.folder / "traces")
        kept.draft(session).write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        return kept.keep(kept.draft(session), probe, run, session, len(content), digest)

    def promise(self, run, files, probe="probe-1", **more):
        """The run's manifest: files by name and content."""
        told = [file_of(f"captures/{name}", content) for name, content in files.items()]
        own = {"id": run, "probe": probe, "kind": "mptcp", "files": told, "result": {}}
        self.registry.runs.put(run, probe, own | more)

    def halves(self, *come, **more):
        """The run of both is promised; of those named the captures are here."""
        self.promise(RUN, HALVES, **more)
        for name in come:
            self.come(HALVES[name], name)

    def rows(self, table, probe="probe-1"):
        folder = self.folder / "traces" / probe / ".tables"
        return [row for part in sorted((folder / table).glob("*.parquet")) for row in pq.read_table(part).to_pylist()]

    def states(self):
        return {name: (one.state, one.why) for (_, name), one in self.registry.trace_tables.of().items()}

    def config(self, database, reserve_bytes=0, more=""):
        """Its server.toml, with that database."""
        file = self.folder / "server.toml"
        store = f'[store]\nfolder = "{database.folder}"\nport = {database.port}\n'
        file.write_text(f"{store}[traces]\nreserve_bytes = {reserve_bytes}\n{more}")
        return file
