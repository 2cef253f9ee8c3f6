"""``python -m tandem.experiment.delay``."""

import sys

from tandem.experiment.base import main
from tandem.experiment.delay.experiment import EXPERIMENT

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT))
