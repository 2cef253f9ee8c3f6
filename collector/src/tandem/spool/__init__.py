"""The durable queue between measuring and sending: what was appended survives power cuts until the gateway has it."""

from tandem.spool.blob import Item
from tandem.spool.counts import Counts
from tandem.spool.errors import SpoolBusyError, SpoolError, SpoolFullError
from tandem.spool.notices import Notice
from tandem.spool.outstanding import Batch
from tandem.spool.spool import Spool

__all__ = ["Batch", "Counts", "Item", "Notice", "Spool", "SpoolBusyError", "SpoolError", "SpoolFullError"]
