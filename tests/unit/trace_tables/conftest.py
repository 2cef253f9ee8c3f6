"""The captures made packet by packet are those of the native pass's own tests; the desk that takes them in is that of the traces'."""

import sys
from pathlib import Path

sys.path += [str(Path(__file__).resolve().parents[1] / name) for name in ("traces_core", "traces")]
