"""``python -m tandem_server``."""

import sys

from tandem_server.cli.main import main

sys.exit(main())
