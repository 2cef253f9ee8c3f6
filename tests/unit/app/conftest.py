from __future__ import annotations

import sys
from pathlib import Path

# The HTTPS gateway of the export tests is used here as well.
sys.path.insert(0, str(Path(__file__).parents[1] / "export"))
