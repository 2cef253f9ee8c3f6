"""A desk on a folder, with files to offer."""

import contextlib
import io

from support.offers import offer_of
from tandem.schema.trace import encoded
from tandem_server.registry import Registry
from tandem_server.uploads.service import UploadLimits, UploadService
from tandem_server.uploads.store import TraceFolder

CHUNK = 4096
PLENTY = UploadLimits(reserve_bytes=0)


def offered(content, name="captures/run-1-a.pcap", encoding="gzip", run="run-1", chunk=CHUNK):
    """The offer of ``content`` and its stream."""
    stream = b"".join(encoded(content[at : at + chunk], encoding) for at in range(0, len(content), chunk))
    return offer_of(io.BytesIO(content), name, run, encoding, chunk), stream


class Place:
    """What one server's processes share: a registry's file and a folder."""

    def __init__(self, folder, limits=PLENTY, store=None):
        self.folder, self.limits = folder, limits
        self.store = store or TraceFolder(folder / "traces")
        self.registry = Registry(folder / "registry.sqlite")
        with contextlib.suppress(ValueError):
            self.registry.probes.add("probe-1")
            self.registry.probes.add("probe-2")
        self.desk = UploadService(self.registry, self.store, folder / "traces/.unfinished", limits)

    def stream(self, probe, offer):
        return self.folder / "traces/.unfinished" / probe / f"{offer.sha256}.stream"

    def send(self, probe, offer, stream, until=None):
        """From where it is, in one request."""
        offset = self.desk.offer(probe, offer).offset
        with contextlib.closing(self.desk.begin(probe, offer.sha256, offset)) as writer:
            writer.append(stream[offset:until])
            self.desk.checkpoint(writer)

    def received(self, probe, offer, stream):
        """The whole way; the receipt."""
        self.send(probe, offer, stream)
        return self.desk.settle(probe, offer.sha256).receipt
