"""The durable queue between measuring and sending: what was appended survives power cuts until the gateway has it."""

from tandem.spool.database import Counts, Item, SpoolError, SpoolFullError
from tandem.spool.spool import Batch, Notice, Spool

__all__ = ["Batch", "Counts", "Item", "Notice", "Spool", "SpoolError", "SpoolFullError"]
