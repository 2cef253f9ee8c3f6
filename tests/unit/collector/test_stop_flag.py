"""The flag by which programs are stopped: a signal that comes while the main thread waits for it must not stop it for ever."""

import subprocess
import sys
import threading

from tandem.stop_flag import StopFlag

STORM = """
import random, signal
from tandem.stop_flag import StopFlag
heard, flags = 0, [StopFlag()]
def on_signal(*_):
    global heard
    heard += 1
    flags[0].set()
    if heard < 3000:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 4e-5))  # the next one only now: handlers do not pile up
signal.signal(signal.SIGALRM, on_signal)
signal.setitimer(signal.ITIMER_REAL, 1e-5)
while heard < 3000:
    flags[0] = StopFlag()
    flags[0].wait(2e-5)
print(heard)
"""


def test_a_signal_at_any_instant_of_a_wait_is_no_deadlock():
    done = subprocess.run([sys.executable, "-c", STORM], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("3000\n", "")


def test_all_who_wait_are_woken_and_a_timeout_is_no_stop():
    flag = StopFlag()
    assert not flag.wait(0.001)
    assert not flag.wait(-1)
    woken: list[bool] = []
    threads = [threading.Thread(target=lambda: woken.append(flag.wait())) for _ in range(4)]
    for thread in threads:
        thread.start()
    flag.set()
    for thread in threads:
        thread.join(60)
    assert woken == [True] * 4
    assert flag.wait()
