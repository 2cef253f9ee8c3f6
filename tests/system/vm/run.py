"""``run.py [--files FILE …] COMMAND …``: run a command in the tests' virtual machine, by hand or from another test's script."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from vm import machine


def main() -> int:
    """The command's exit status, 3 when there is no machine."""
    parser = argparse.ArgumentParser(prog="run.py", description=__doc__)
    parser.add_argument("--files", nargs="*", type=Path, default=[], help="copied into the command's folder, {folder}")
    parser.add_argument("--append", default="", help="added to the kernel's command line")
    parser.add_argument("--timeout", type=float, default=280.0, metavar="S", help="default %(default).0f s")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where to put the files that the command left")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="as in: -- sh -c 'uname -r'")
    args = parser.parse_args()
    words = args.command[1:] if args.command[:1] == ["--"] else args.command
    try:
        done = machine.run(
            words, {file.name: file.read_bytes() for file in args.files}, append=args.append, timeout_s=args.timeout
        )
    except machine.VmError as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 3
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    print(
        f"run.py: booted in {done.boot_s:.1f} s, ran {done.command_s:.1f} s ({done.cpu_s:.0f} s of processor), exit {done.exit}",
        file=sys.stderr,
    )
    if args.keep is not None:
        args.keep.mkdir(parents=True, exist_ok=True)
        for name, content in done.files.items():
            (args.keep / name).write_bytes(content)
    return done.exit


if __name__ == "__main__":
    sys.exit(main())
