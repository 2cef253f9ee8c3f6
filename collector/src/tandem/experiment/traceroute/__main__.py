"""``python -m tandem.experiment.traceroute``."""

import sys

from tandem.experiment.base import main
from tandem.experiment.traceroute.experiment import EXPERIMENT

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT))
