"""Who may send and measure, which sessions are open, the ledger of runs and traces, the probes' queues of campaigns: one SQLite file."""

from tandem_server.registry.backfill import CONSUMERS, NOTED_AGAIN_S, BackfillQueue, Debounce, Hour, LateHour, Settled
from tandem_server.registry.campaigns import CampaignQueue, QueuedCampaign, QueueFull
from tandem_server.registry.database import NotErasableError, Registry, RegistryError
from tandem_server.registry.ledger import CompleteRun, CountedNumbers, DueRun, JudgedRun, LedgerSum
from tandem_server.registry.probes import (
    HUB_AND_PEOPLE,
    BadCode,
    Enrolment,
    Enrolments,
    Invitation,
    KeptState,
    KeyTaken,
    Network,
    NetworkFullError,
    Probe,
    Seen,
    probe_of,
    valid_name,
)
from tandem_server.registry.runs import NO_CAMPAIGN, LedgerConflict, Lone, Run, SessionRow
from tandem_server.registry.traces import NameTaken, PendingUploads, TablesOf, TooManyUnfinished, TraceRow, Unfinished

__all__ = [
    "CONSUMERS",
    "HUB_AND_PEOPLE",
    "NOTED_AGAIN_S",
    "NO_CAMPAIGN",
    "BackfillQueue",
    "BadCode",
    "CampaignQueue",
    "CompleteRun",
    "CountedNumbers",
    "Debounce",
    "DueRun",
    "Enrolment",
    "Enrolments",
    "Hour",
    "Invitation",
    "JudgedRun",
    "KeptState",
    "KeyTaken",
    "LateHour",
    "LedgerConflict",
    "LedgerSum",
    "Lone",
    "NameTaken",
    "Network",
    "NetworkFullError",
    "NotErasableError",
    "PendingUploads",
    "Probe",
    "QueueFull",
    "QueuedCampaign",
    "Registry",
    "RegistryError",
    "Run",
    "Seen",
    "SessionRow",
    "Settled",
    "TablesOf",
    "TooManyUnfinished",
    "TraceRow",
    "Unfinished",
    "probe_of",
    "valid_name",
]
