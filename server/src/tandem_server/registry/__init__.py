"""Who may send and measure, which sessions are open, the ledger of runs and traces, the probes' queues of campaigns: one SQLite file."""

from tandem_server.registry.campaigns import CampaignQueue, QueuedCampaign, QueueFull
from tandem_server.registry.counted import CompleteRun, CountedNumbers
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
from tandem_server.registry.late import LateHour, Ripening, Settled
from tandem_server.registry.ledger_runs import DueRun, JudgedRun, LedgerSum
from tandem_server.registry.pending_uploads import NameTaken, TooManyUnfinished, Unfinished
from tandem_server.registry.probes import Probe, valid_name
from tandem_server.registry.runs import LedgerConflict, Run
from tandem_server.registry.seen import KeptState, Sight
from tandem_server.registry.sessions import Lone, SessionRow
from tandem_server.registry.trace_tables import TablesOf
from tandem_server.registry.traces import TraceRow

__all__ = [
    "HUB_AND_PEOPLE",
    "BadCode",
    "CampaignQueue",
    "CompleteRun",
    "CountedNumbers",
    "DueRun",
    "Enrolment",
    "Enrolments",
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
    "Probe",
    "QueueFull",
    "QueuedCampaign",
    "Registry",
    "RegistryError",
    "Ripening",
    "Run",
    "SessionRow",
    "Settled",
    "Sight",
    "TablesOf",
    "TooManyUnfinished",
    "TraceRow",
    "Unfinished",
    "valid_name",
]
