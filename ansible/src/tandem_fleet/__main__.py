"""``python -m tandem_fleet``."""

from tandem_fleet.cli import main

raise SystemExit(main())
