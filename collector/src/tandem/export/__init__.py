"""Records and manifests from the spool to the gateway, over whichever path works. See server/spec/ingest-api.md."""

from tandem.export.exporter import Exporter, ExportState
from tandem.export.gateway import GatewayAddress, SetupError
from tandem.export.manifests import PendingManifests

__all__ = ["ExportState", "Exporter", "GatewayAddress", "PendingManifests", "SetupError"]
