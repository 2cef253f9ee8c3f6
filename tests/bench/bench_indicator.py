"""What does the status LED cost the probe: waiting for the next edge, against a thread that looks every 20 ms (half the shortest flash)?"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from tandem.indicator.lamp import NAMES, Lamp, Leds
from tandem.indicator.player import Player, at
from tandem.schema.status_led import BY_NAME, LedState

LOOK_S = 0.02


def played(lamp: Lamp, state: LedState, seconds: float) -> float:
    """Processor seconds."""
    began_s = time.process_time()
    player = Player(lamp, lambda: state)
    player.start()
    time.sleep(seconds)
    player.close()
    return time.process_time() - began_s


def looked(lamp: Lamp, state: LedState, seconds: float) -> float:
    """The same, of a loop that looks."""
    began_s, began_ns = time.process_time(), time.monotonic_ns()
    while (since_ns := time.monotonic_ns() - began_ns) < seconds * 1e9:
        lamp.show(state.colour if at(state, since_ns // 1_000_000)[0] else "dark")
        time.sleep(LOOK_S)
    return time.process_time() - began_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each; default: %(default)g")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for name in NAMES.values():
            (Path(folder) / name).mkdir()
            for file in ("brightness", "trigger"):
                (Path(folder) / name / file).write_text("[none]\n")
        for name in ("well", "measuring", "call"):
            lamp, state = Lamp(Leds(Path(folder))), BY_NAME[name]
            edges, looks = played(lamp, state, args.seconds), looked(lamp, state, args.seconds)
            rows.append(
                {
                    "state": name,
                    "core_share": round(edges / args.seconds, 6),
                    "looking_core_share": round(looks / args.seconds, 6),
                    "times_less": round(looks / edges, 1),
                }
            )
    if args.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'state':12} {'edges':>10} {'looking':>10} {'times less':>11}   (share of one core)")
    for row in rows:
        print("{state:12} {core_share:10.4%} {looking_core_share:10.4%} {times_less:11}".format(**row))


if __name__ == "__main__":
    main()
