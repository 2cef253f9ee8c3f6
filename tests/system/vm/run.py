"""``run.py -- COMMAND …``: run a command in the tests' virtual machine, by hand."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from vm import machine


def main(words: list[str]) -> int:
    """The command's exit status, 3 when there is no machine."""
    try:
        done = machine.run(words[words[:1] == ["--"] :], {})
    except machine.VmError as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 3
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    print(f"run.py: booted in {done.boot_s:.1f} s, ran {done.command_s:.1f} s, exit {done.exit}", file=sys.stderr)
    return done.exit


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
