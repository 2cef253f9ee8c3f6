"""Who may send and measure, which sessions are open, the ledger of runs, the probes' queues of campaigns: one SQLite file."""

from tandem_server.registry.campaigns import CampaignQueue, QueuedCampaign, QueueFull
from tandem_server.registry.database import Registry, RegistryError
from tandem_server.registry.probes import Probe, valid_name
from tandem_server.registry.runs import LedgerConflict, Run
from tandem_server.registry.sessions import SessionRow

__all__ = [
    "CampaignQueue",
    "LedgerConflict",
    "Probe",
    "QueueFull",
    "QueuedCampaign",
    "Registry",
    "RegistryError",
    "Run",
    "SessionRow",
    "valid_name",
]
