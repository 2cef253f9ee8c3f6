"""``python -m tandem.experiment.dash``."""

import sys

from tandem.experiment.base import main
from tandem.experiment.dash.experiment import EXPERIMENT

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT))
