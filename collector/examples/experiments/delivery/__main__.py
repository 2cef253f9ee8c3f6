"""``python delivery``: the folder is a program."""

import sys

from experiment import EXPERIMENT

from tandem.experiment.base import main

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT))
