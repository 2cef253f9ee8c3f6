"""``python -m tandem.experiment.pageload``."""

import sys

from tandem.experiment.base import main
from tandem.experiment.pageload.experiment import EXPERIMENT

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT))
