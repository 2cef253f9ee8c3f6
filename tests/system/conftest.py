"""What tests here share with others: a probe's second of records, a server on loopback."""

import sys
from pathlib import Path

sys.path[:0] = [
    str(Path(__file__).resolve().parents[1] / folder)
    for folder in ("bench", "unit/ingest", "unit/publish", "unit/report")
]
