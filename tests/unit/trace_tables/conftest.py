"""The captures made packet by packet are those of the native pass's own tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "traces_core"))
