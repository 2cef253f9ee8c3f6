"""A run's process lives for seconds and three may begin at once: most of its processor time is loading, on a small Pi a second each."""

import json
import subprocess
import sys

NOT_NEEDED = {"argparse", "pkgutil", "platform", "secrets", "statistics", "decimal", "tandem.schema.metrics"}


def test_a_download_loads_no_module_that_it_can_do_without() -> None:
    told = "import json, sys, tandem.experiment.download.__main__; print(json.dumps(list(sys.modules)))"
    before = (
        "import json, sys; print(json.dumps(list(sys.modules)))"  # what the environment itself loads (site, .pth files)
    )
    loaded, own = (
        set(json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout))
        for code in (told, before)
    )
    assert "tandem.experiment.transfer" in loaded
    assert loaded & NOT_NEEDED <= own
