"""``python -m tandem_image``."""

from tandem_image.cli import main

raise SystemExit(main())
