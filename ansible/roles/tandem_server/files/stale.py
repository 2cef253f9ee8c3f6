"""Print the units among the first argument that run since before one of the files that follow was changed.

A restart that an interrupted run of the playbook missed is found that way by the next. Times: systemd's and ours are CLOCK_MONOTONIC; of a
file the ctime, of a link its own.
"""

import os
import subprocess
import sys
import time

units, files = sys.argv[1].split(), sys.argv[2:]
since_boot = time.time() - time.monotonic()
changed = max((os.lstat(file).st_ctime for file in files if os.path.lexists(file)), default=0.0)
for unit in units:
    asked = subprocess.run(
        ["systemctl", "show", "--property=ActiveState,ExecMainStartTimestampMonotonic", unit],
        check=True,
        capture_output=True,
        text=True,
    )
    told = dict(line.split("=", 1) for line in asked.stdout.splitlines())
    started_us = int(told["ExecMainStartTimestampMonotonic"])
    if told["ActiveState"] == "active" and since_boot + started_us / 1e6 < changed:
        print(unit)
