"""Records, manifests and traces to the gateway, over whichever path works. See docs/reference/probe-api.md."""

from tandem.export.exporter import Exporter
from tandem.export.gateway import GatewayAddress, SetupError
from tandem.export.manifests import PendingManifests
from tandem.export.paths import AnyPath
from tandem.export.trace_queue import Kept, TraceQueue
from tandem.export.trace_requests import LEAST_LEFT_BYTES, Permit
from tandem.export.traces import TraceUploader

__all__ = [
    "LEAST_LEFT_BYTES",
    "AnyPath",
    "Exporter",
    "GatewayAddress",
    "Kept",
    "PendingManifests",
    "Permit",
    "SetupError",
    "TraceQueue",
    "TraceUploader",
]
