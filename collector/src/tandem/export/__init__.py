"""Records and manifests from the spool to the gateway, over whichever path works. See server/spec/ingest-api.md."""

from tandem.export.any_path import AnyPath
from tandem.export.campaigns import CampaignQueueClient
from tandem.export.exporter import Exporter, ExportState
from tandem.export.gateway import GatewayAddress, SetupError
from tandem.export.manifests import PendingManifests
from tandem.export.sending import Later

__all__ = [
    "AnyPath",
    "CampaignQueueClient",
    "ExportState",
    "Exporter",
    "GatewayAddress",
    "Later",
    "PendingManifests",
    "SetupError",
]
