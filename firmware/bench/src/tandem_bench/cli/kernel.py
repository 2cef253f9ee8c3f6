"""``tandem-bench kernel``: the kit on another kernel, in a virtual machine: image looked at, machine run, outcome kept and told."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tandem_bench import BenchError, ExitCode, UsageError
from tandem_bench.kernel import SEED, SEED_BYTES, image, machine
from tandem_bench.kernel.machine import Done, OverdueError, VmError
from tandem_bench.run.session import Stopped, StopSignals

MEMORY_MB = 1024
MANIFEST = "kernel.json"


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "kernel",
        help="the kit on another kernel (Multipath TCP v0.94), in a virtual machine",
        description="Boots a virtual machine with the kernel image that you bring, or the distribution's own, and this system's programs; "
        "in it server, links of 4 and 2 Mbit/s and collector in namespaces as on the bench. By default it makes three downloads. What is "
        "measured in an emulated machine says that things work, not how fast they are. Needs QEMU, and the machine that "
        "./kit test tests/system/test_vm_modems.py makes.",
        epilog="DIR gets kernel.json (image, times, memory, rows or runs, why it failed), the console, and the campaign folder kit/. "
        "Exit status: 0 as expected; 1 a row is not, a run failed, the kernel ended, or its time was up; 2 the image, a file or the "
        "command line is wrong; 3 this machine, or the kernel, lacks something; 130 stopped. The machine is gone at the end in any case.",
    )
    parser.add_argument(
        "--image",
        required=True,
        metavar="FILE|stock",
        help="a bzImage of Multipath TCP v0.94, or the distribution's own kernel",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--self-test", action="store_true", help="what the kernel does, against what the collector takes for granted"
    )
    what.add_argument(
        "--campaign", metavar="NAME", help="a campaign by its name, in a form whose rates emulation bears"
    )
    parser.add_argument("--form", default="emulated", metavar="NAME", help="of the campaign (default %(default)s)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="default kernel-runs/TIME")
    parser.add_argument(
        "--timeout", type=float, default=3600.0, metavar="S", help="then the machine is ended (default %(default).0f)"
    )
    parser.add_argument("--json", action="store_true", help="print kernel.json")
    parser.set_defaults(func=_kernel)


def _kernel(args: argparse.Namespace) -> int:
    """``out`` gets ``kernel.json`` and, where there was a kit, its campaign folder."""
    out = args.out or Path("kernel-runs") / time.strftime("%Y%m%d-%H%M%S")
    asked = ["downloads"]
    if args.self_test or args.campaign:
        asked = ["self-test"] if args.self_test else ["campaign", args.campaign, args.form]
    began_s = time.time()
    found = image.read(args.image)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out}: not an empty folder; hint: another --out")
    if (lack := machine.lacks()) is not None:
        raise BenchError(lack)
    told: dict[str, Any] = {
        "format": "tandem-kernel/1",
        "image": "stock" if found.file is None else str(found.file),
        "sha256": found.sha256,
        "release": found.release,
        "asked": asked,
        "failure": None,
        "lacks": False,
        "ok": False,
    }
    done, console = None, ""
    StopSignals().install()
    try:
        done = machine.run(
            ["python3", "-m", "tandem_bench.kernel.inside", *asked],
            files={SEED: os.urandom(SEED_BYTES)},
            timeout_s=args.timeout,
            memory_mb=MEMORY_MB,
            kernel=found.file,
            append="panic=-1 oops=panic",
        )
        console = done.console
    except VmError as error:
        console = error.console
        lacking = image.lack(console)
        told["failure"] = lacking or image.panic(console) or str(error).splitlines()[0]
        # Without a word of any kernel there was no machine, unless it is the time that was up.
        told["lacks"] = lacking is not None or not (console or isinstance(error, OverdueError))
    except Stopped as stop:
        told["failure"] = f"stopped ({stop})"
    told["took_s"] = round(time.time() - began_s, 1)
    if done is not None:
        _take(told, done)
    try:
        _keep(out, told, done, console)
    except OSError as error:
        raise UsageError(f"{out}: {error.strerror}; hint: another --out") from error
    print(json.dumps(told) if args.json else text(told, out))
    if told["failure"] is not None:
        print(f"tandem-bench kernel: {told['failure']}", file=sys.stderr)
    return _status(told)


def _take(told: dict[str, Any], done: Done) -> None:
    told["machine"] = {
        "boot_s": round(done.boot_s, 1),
        "command_s": round(done.command_s, 1),
        "cpu_s": round(done.cpu_s, 1),
        "memory_mb": MEMORY_MB,
        "emulator_resident_bytes": done.resident_bytes,
    }
    try:
        inside = json.loads(done.files["told.json"])
    except (KeyError, ValueError):
        lacking = image.lack(done.console)
        last = (done.stderr.strip().splitlines() or ["?"])[-1]
        told["failure"] = lacking or f"the machine's program ended with status {done.exit}: {last}"
        told["lacks"] = lacking is not None
        return
    told |= {"release": inside.pop("linux", told["release"])} | inside


def _status(told: dict[str, Any]) -> int:
    if told["lacks"]:
        return ExitCode.ENVIRONMENT
    if "machine" not in told and str(told["failure"]).startswith("stopped"):
        return ExitCode.INTERRUPTED
    return ExitCode.OK if told["ok"] and told["failure"] is None else ExitCode.NEGATIVE


def _keep(out: Path, told: dict[str, Any], done: Done | None, console: str) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "console.log").write_text(console)
    if done is not None:
        (out / "stderr.log").write_text(done.stderr)
        if (packed := done.files.get("kit.tar.gz")) is not None:
            (out / "kit").mkdir()
            # By tar, which leaves the folder for no name: Python's has filters for that since 3.11.4, and Debian 12 has 3.11.2.
            command = ["tar", "-xzf", "-", "--no-same-owner", "-C", str(out / "kit")]
            if (unpacked := subprocess.run(command, input=packed, capture_output=True, check=False)).returncode != 0:
                said = " ".join(unpacked.stderr.decode(errors="replace").split())
                told["failure"] = told["failure"] or f"the campaign folder did not arrive whole: {said}"
    part = out / f"{MANIFEST}.tmp"
    part.write_text(json.dumps(told, indent=1) + "\n")
    part.replace(out / MANIFEST)


def text(told: dict[str, Any], out: Path) -> str:
    """For people: the machine, then a line for each row of the self-test, or run."""
    lines = [f"Linux {told['release'] or '?'} ({told['image']})"]
    if "machine" in told:
        used = told["machine"]
        resident = used["emulator_resident_bytes"] / 1e6
        memory = told.get("memory", {})
        taken = (memory.get("total_bytes", 0) - memory.get("available_at_end_bytes", 0)) / 1e6
        lines[0] += (
            f": up after {used['boot_s']:g} s, then {used['command_s']:g} s; {taken:.0f} MB in use inside, {resident:.0f} MB here"
        )
    lines += [
        f"  {'ok   ' if row['ok'] else 'WRONG'} {row['name']}: expected {row['expected']}; found {row['found']}"
        for row in told.get("self_test", {}).get("rows", ())
    ]
    lines += [f"  {_run(run)}" for run in told.get("runs", ())]
    return "\n".join([*lines, f"  {out / MANIFEST}"])


def _run(run: dict[str, Any]) -> str:
    result, parameters = run.get("result") or {}, run.get("parameters") or {}
    experiment = (run.get("experiment") or {}).get("name", "")
    head = f"{experiment} {run.get('kind') or ''} {parameters.get('path') or parameters.get('primary') or ''}".strip()
    if run.get("failure"):
        return f"{head}: failed: {run['failure'].get('reason')}"
    shares = {path: moved.get("received") for path, moved in (result.get("bytes_by_path") or {}).items()}
    goodput = result.get("goodput_bit_per_s")
    return f"{head}: {'' if goodput is None else f'{goodput / 1e6:.2f} Mbit/s'} {shares or ''}".rstrip()
