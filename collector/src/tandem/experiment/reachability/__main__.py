"""``python -m tandem.experiment.reachability``."""

import sys

from tandem.experiment.base import main
from tandem.experiment.reachability.experiment import EXPERIMENT

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT))
