"""The collector's poller alone, on two ports, for so many polls of each: the other side of ``bench_poll_cpu.py``.

usage: collector_poller.py PORT_A PORT_B POLLS
Prints one JSON object: polls made, those that got an answer, and this process's processor seconds (user and system) when
polling began, its modules loaded, and when it ended.
"""

from __future__ import annotations

import json
import sys
import threading
import time

from tandem.modem.poll import Poll
from tandem.modem.poller import Poller


def main(port_a: str, port_b: str, polls: int) -> None:
    """Poll both ports once a second until each has been polled ``polls`` times."""
    made = {"a": 0, "b": 0}
    answered = {"a": 0, "b": 0}
    ended = threading.Event()

    def on_poll(poll: Poll) -> None:
        made[poll.path] += 1
        answered[poll.path] += poll.failure is None
        if min(made.values()) >= polls:
            ended.set()

    pollers = [Poller(path, path.upper(), port, "auto", 1.0, on_poll) for path, port in (("a", port_a), ("b", port_b))]
    began_s = time.process_time()
    for poller in pollers:
        poller.start()
    ended.wait(polls + 30)
    for poller in pollers:
        poller.stop()
    outcome = {"polls": sum(made.values()), "answered": sum(answered.values())}
    print(json.dumps({**outcome, "began_s": began_s, "ended_s": time.process_time()}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
