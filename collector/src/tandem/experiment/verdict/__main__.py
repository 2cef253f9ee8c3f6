"""``python -m tandem.experiment.verdict``."""

import sys

from tandem.experiment.base import main
from tandem.experiment.verdict.experiment import EXPERIMENT

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT))
