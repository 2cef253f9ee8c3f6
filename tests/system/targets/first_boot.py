"""A target's first boot by cloud-init, the real one of the distribution, from files as a card's boot partition or AWS hands them over.

A stand-in only for how the files get there: cloud-init finds them in its seed folder, not on a disk or at AWS's metadata address.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

SEED = "var/lib/cloud/seed/nocloud"
CONFIGURATION = """\
datasource_list: [NoCloud]
network: {{config: disabled}}  # a container's cards are set up from outside
system_info: {{default_user: {{name: {user}, lock_passwd: true, sudo: ["ALL=(ALL) NOPASSWD:ALL"], shell: /bin/bash}}}}
"""


def lay(root: Path, files: Mapping[str, bytes], *, user: str) -> None:
    """``files`` (``user-data``, ``meta-data``) for the first boot of the system in ``root``; ``user``: whom a stock image knows."""
    (root / "etc/cloud/cloud-init.disabled").unlink()
    (root / "etc/cloud/cloud.cfg.d/99_target.cfg").write_text(CONFIGURATION.format(user=user), encoding="ascii")
    seed = root / SEED
    seed.mkdir(parents=True)
    for name, content in files.items():
        (seed / name).write_bytes(content)
