"""``python -m tandem.experiment.latency``."""

import sys

from tandem.experiment.base import main
from tandem.experiment.latency.experiment import EXPERIMENT

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT))
