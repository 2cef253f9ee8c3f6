"""Runs jobs side by side and says how it goes. Each job leaves NAME.log and NAME.jsonl in a folder; ``report.py`` reads them."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from tiers.plan import ROOT, Job, Kind

# Root's tests, where nothing that they make can outlive them: the first process of the pid namespace takes all others with it. A folder
# of its own for the names of network namespaces, so that files side by side may use the same names; and terminals of its own, so that the
# path of an emulated modem that went away is not soon another test's.
OWN_TERMINALS = (
    "mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts /dev/pts && mount --bind /dev/pts/ptmx /dev/ptmx"
)
NAMESPACES = (
    *("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c"),
    f'mount -t tmpfs tmpfs /run/netns && {OWN_TERMINALS} && ip link set lo up && exec "$@"',
    "in-namespaces",
)
NO_TESTS = 5
"""pytest's status where a whole file skips."""
SAY_EVERY_S = 30.0
STOP_S = 15.0
PRESSURE = Path("/proc/pressure/cpu")
CROWDED = 70.0
"""Per cent of the last ten seconds in which something that could run had no processor."""
YIELDS: dict[Kind, int] = {"unit": 5, "check": 5, "machine": 5}
"""Niceness: a third of the processor of a job that does not yield."""
SETTLED_S = 5.0
"""What a job asks of the processors shows so long after its start."""


class Pool:
    """``capacities``: how many jobs of a kind run at a time; those of the kind ``alone`` begin when all others have ended.
    ``sure``: so many of the kind ``wait`` run whatever else does; more only while the processors are not crowded, since jobs that starve
    each other reach their time limits. ``owner``: (user, group) of what needs no rights, where this process is root in somebody's name."""

    def __init__(
        self,
        folder: Path,
        capacities: dict[Kind, int],
        owner: tuple[int, int] | None,
        sure: int,
        pressure: Path = PRESSURE,
    ) -> None:
        self._folder, self._capacities, self._owner = folder, capacities, owner
        self._sure, self._pressure = sure, pressure
        self._lock = threading.Lock()
        self._running: dict[subprocess.Popen[bytes], tuple[Job, Path]] = {}
        self._began = self._said = time.monotonic()
        self._stopped = False
        self._begun = self._ended = self._of = self._waiting = 0
        self._last_wait = -SETTLED_S

    def run(self, jobs: Iterable[Job]) -> None:
        """To the end of the last. Ctrl-C ends all of them and is raised again when they are gone."""
        queues: dict[Kind, list[Job]] = {}
        for job in jobs:
            queues.setdefault(job.kind, []).append(job)
            self._of += 1
        last = queues.pop("alone", [])
        if os.geteuid() == 0:
            Path("/run/netns").mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="tandem-") as scratch:
            Path(scratch).chmod(0o755)
            try:
                self._side_by_side(queues, Path(scratch))
                self._side_by_side({"alone": last}, Path(scratch))
            except BaseException:
                self._stop()
                raise

    def _side_by_side(self, queues: dict[Kind, list[Job]], scratch: Path) -> None:
        threads = [
            threading.Thread(target=self._work, args=(queue, scratch), daemon=True)
            for kind, queue in queues.items()
            for _ in range(min(len(queue), self._capacities[kind]))
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(0.5 / len(threads))
            if time.monotonic() - self._said > SAY_EVERY_S:
                with self._lock:
                    self._say("running: " + ", ".join(far(job, results) for job, results in self._running.values()))

    def _work(self, queue: list[Job], scratch: Path) -> None:
        while True:
            with self._lock:
                if not queue or self._stopped:
                    return
                job = queue.pop(0) if self._room(queue[0].kind) else None
                if job is not None:
                    self._begun += 1
                    # Unique beside what an earlier run left in the folder.
                    name = f"{int(time.time())}-{self._begun:03d}"
            if job is None:
                time.sleep(1.0)
                continue
            good, seconds = self._run(job, name, scratch / name)
            with self._lock:
                self._ended += 1
                self._waiting -= job.kind == "wait"
                if not self._stopped:
                    self._say(f"{'passed' if good else 'FAILED'}  {short(job.name)}  {seconds:.0f} s")

    def _room(self, kind: Kind) -> bool:
        """Whether a job of this kind may begin now; it is counted."""
        if kind != "wait":
            return True
        now = time.monotonic()
        if self._waiting >= self._sure and (now - self._last_wait < SETTLED_S or crowded(self._pressure)):
            return False
        self._waiting += 1
        self._last_wait = now
        return True

    def _run(self, job: Job, name: str, temporary: Path) -> tuple[bool, float]:
        log, results = self._folder / f"{name}.log", self._folder / f"{name}.jsonl"
        temporary.mkdir()
        results.touch()
        environment = {**os.environ, "TANDEM_RESULTS": str(results), **job.environment}
        # Whoever ends this process ends the jobs. What computes yields to what waits, whose time is the real one.
        front = ["nice", "-n", str(YIELDS.get(job.kind, 0)), "setpriv", "--pdeathsig", "KILL"]
        if self._owner is not None and job.root:
            # A user's checkout must not fill with root's files.
            environment["PYTHONPYCACHEPREFIX"] = str(temporary.parent / "pycache")
            environment["HYPOTHESIS_STORAGE_DIRECTORY"] = str(temporary.parent / "hypothesis")
        if job.root:
            front += NAMESPACES
        elif self._owner is not None:
            uid, gid = self._owner
            front += [f"--reuid={uid}", f"--regid={gid}", "--init-groups"]
            for path in (temporary, results):
                os.chown(path, uid, gid)
            caller = pwd.getpwuid(uid)
            environment = {key: value for key, value in environment.items() if not key.startswith("SUDO_")}
            environment |= {"HOME": caller.pw_dir, "USER": caller.pw_name, "LOGNAME": caller.pw_name}
        argv = [*front, *job.argv, *(["--basetemp", str(temporary / "t")] if job.files else [])]
        began = time.monotonic()
        with log.open("wb") as written:
            streams = {"stdin": subprocess.DEVNULL, "stdout": written, "stderr": subprocess.STDOUT}
            process = subprocess.Popen(argv, cwd=ROOT, env=environment, start_new_session=True, **streams)
            with self._lock:
                self._running[process] = (job, results)
            try:
                status = process.wait(job.limit_s)
            except subprocess.TimeoutExpired:
                end(process)
                status = process.wait()
                written.write(f"\nended: not done after {job.limit_s:.0f} s\n".encode())
            with self._lock:
                del self._running[process]
        seconds = round(time.monotonic() - began, 1)
        if not self._stopped:
            line = {"job": job.name, "files": job.files, "status": status, "seconds": seconds}
            line |= {"log": log.name, "alone": job.alone}
            with results.open("a") as file:
                file.write(json.dumps(line) + "\n")
        return status == 0 or (status == NO_TESTS and bool(job.files)), seconds

    def _say(self, words: str) -> None:
        self._said = time.monotonic()
        seconds = int(self._said - self._began)
        print(
            f"{seconds // 60:3d}:{seconds % 60:02d}  {self._ended:3d} of {self._of}  {words}",
            file=sys.stderr,
            flush=True,
        )

    def _stop(self) -> None:
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for process in running:
            end(process)


def crowded(pressure: Path) -> bool:
    """Whether the processors have more to do than they can; False where the kernel does not tell (no PSI)."""
    try:
        words = pressure.read_text().split()
    except OSError:
        return False
    return float(words[1].removeprefix("avg10=")) > CROWDED


def end(process: subprocess.Popen[bytes]) -> None:
    """A job and what it started: asked first, so that it can leave nothing behind."""
    # The first process of a pid namespace takes from outside what it handles, as pytest does an interrupt, and nothing else.
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(STOP_S)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def short(name: str) -> str:
    """A job of several files is named by the first."""
    first, *more = name.split(" tests/")
    return first.removeprefix("tests/") + (f" and {len(more)} more" if more else "")


def far(job: Job, results: Path) -> str:
    if job.kind != "unit":
        return short(job.name)
    done = results.read_bytes().count(b'"outcome"')
    return f"{job.name} ({done} done)"
