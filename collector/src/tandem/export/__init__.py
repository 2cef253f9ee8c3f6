"""Records, manifests and traces to the gateway, over whichever path works. See docs/reference/probe-api.md."""

from tandem.export.exporter import Exporter, PendingManifests
from tandem.export.gateway import AnyPath, GatewayAddress, SetupError
from tandem.export.trace_queue import TraceQueue
from tandem.export.traces import LEAST_LEFT_BYTES, Permit, TraceUploader

__all__ = [
    "LEAST_LEFT_BYTES",
    "AnyPath",
    "Exporter",
    "GatewayAddress",
    "PendingManifests",
    "Permit",
    "SetupError",
    "TraceQueue",
    "TraceUploader",
]
