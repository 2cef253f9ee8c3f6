"""Who may send and measure, which sessions are open, and the ledger of runs: one SQLite file."""

from tandem_server.registry.database import Registry, RegistryError
from tandem_server.registry.probes import Probe, valid_name
from tandem_server.registry.runs import LedgerConflict, Run
from tandem_server.registry.sessions import SessionRow

__all__ = ["LedgerConflict", "Probe", "Registry", "RegistryError", "Run", "SessionRow", "valid_name"]
