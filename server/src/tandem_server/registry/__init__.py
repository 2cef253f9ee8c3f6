"""Who may send and measure, which sessions are open, the ledger of runs and traces, the probes' queues of campaigns: one SQLite file."""

from tandem_server.registry.backfill import CONSUMERS, NOTED_AGAIN_S, BackfillQueue, Debounce, Hour, LateHour, Settled
from tandem_server.registry.campaigns import CampaignQueue, QueuedCampaign, QueueFull
from tandem_server.registry.database import Registry, RegistryError
from tandem_server.registry.enrolments import (
    HUB_AND_PEOPLE,
    BadCode,
    Enrolment,
    Enrolments,
    Invitation,
    KeyTaken,
    Network,
    NetworkFullError,
)
from tandem_server.registry.erasure import NotErasableError
from tandem_server.registry.last_seen import KeptState, Seen
from tandem_server.registry.ledger import CompleteRun, CountedNumbers, DueRun, JudgedRun, LedgerSum
from tandem_server.registry.pending_uploads import NameTaken, PendingUploads, TooManyUnfinished, Unfinished
from tandem_server.registry.probes import Probe, probe_of, valid_name
from tandem_server.registry.runs import NO_CAMPAIGN, LedgerConflict, Lone, Run, SessionRow
from tandem_server.registry.traces import TablesOf, TraceRow

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
