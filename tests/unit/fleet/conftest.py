"""Programs and modules of ansible/ that are files and no package."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[3] / "ansible/plugins/module_utils")]
