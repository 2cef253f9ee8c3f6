"""``python -m tandem.experiment.bandwidth``."""

import sys

from tandem.experiment.bandwidth.experiment import EXPERIMENT
from tandem.experiment.base import main

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT))
