"""Programs: awaited by their ready line, ended in order, their failure said with the last line of their log."""

import sys
from pathlib import Path

import pytest

from tandem_bench.rig.programs import Program, ProgramError, Programs, usage_so_far

SLEEPER = "import time; print('ready to sleep', flush=True); time.sleep(600)"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_leaving_ends_all_even_after_an_error(tmp_path: Path) -> None:
    programs = Programs(tmp_path)

    def work_that_fails() -> None:
        with programs:
            programs.start("one", python(SLEEPER), ready_s=60)
            programs.start("two", python(SLEEPER), ready_s=60)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work_that_fails()
    assert [usage.name for usage in programs.ended] == ["two", "one"]


def test_a_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + SLEEPER
    with Programs(tmp_path) as programs:
        program = programs.start("stubborn", python(code), ready_s=60)
        assert programs.end(program, timeout_s=0.2).exit == -9


@pytest.mark.parametrize(
    ("code", "ready_s", "says"),
    [
        ("import sys; sys.exit('no such port: /dev/x')", 60, "ended before it was ready: no such port: /dev/x"),
        ("print('hello', flush=True); import time; time.sleep(600)", 60, "said 'hello' instead of ready"),
        ("import time; time.sleep(600)", 0.1, "not ready within"),
    ],
)
def test_why_it_did_not_start(tmp_path: Path, code: str, ready_s: float, says: str) -> None:
    with Programs(tmp_path) as programs, pytest.raises(ProgramError, match=says):
        programs.start("broken", python(code), ready_s=ready_s)


def test_a_program_that_dies_later_is_noticed(tmp_path: Path) -> None:
    code = "import sys; print('ready', flush=True); sys.stdin.read(); sys.exit('the disk is full')"
    with Programs(tmp_path) as programs:
        program = programs.start("database", python(code), ready_s=60)
        program.wait(60)
        why = programs.watch()
    assert why is not None
    assert "database ended by itself with status 1: the disk is full" in why


def test_usage_counts_the_children_that_still_run(tmp_path: Path) -> None:
    busy = "import time\nwhile time.process_time()<0.3: pass\nprint('ready',flush=True)\ntime.sleep(600)"
    code = f"""import signal,subprocess,sys,time
signal.signal(signal.SIGTERM, lambda *_: (child.kill(), sys.exit(0)))
child=subprocess.Popen([sys.executable,'-c',{busy!r}])
time.sleep(600)"""
    # The parent says nothing; its child's ready line comes through the same pipe.
    with Programs(tmp_path) as programs:
        program = programs.start("parent", python(code), ready_s=60)
        cpu_seconds, peak_bytes = usage_so_far(program.pid)
    assert cpu_seconds >= 0.25
    assert peak_bytes > 0


def test_a_program_may_speak_although_the_disk_is_full() -> None:
    talker = "print('ready', flush=True); print('x' * 1_000_000, flush=True)"
    program = Program("talker", python(talker), Path("/dev/full"))
    program.await_ready(60)
    usage = program.wait(60)
    assert usage is not None
    assert usage.exit == 0
