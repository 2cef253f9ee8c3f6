"""``python -m tandem.experiment.download``."""

import sys

from tandem.experiment.base import main
from tandem.experiment.download.experiment import EXPERIMENT

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT))
