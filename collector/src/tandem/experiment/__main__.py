"""``python -m tandem.experiment NAME``: one experiment's process (``base``)."""

import importlib
import sys
from pathlib import Path

from tandem.experiment import names
from tandem.experiment.base import main

if __name__ == "__main__":
    name, *arguments = sys.argv[1:] or [""]
    if not name.isidentifier() or not (Path(__file__).parent / name / "__init__.py").is_file():
        sys.exit(f"usage: python -m tandem.experiment NAME [--describe]; NAME is one of {', '.join(names())}")
    sys.exit(main(importlib.import_module(f"tandem.experiment.{name}").EXPERIMENT, arguments))
