"""How long a survey of 10,000 names takes, and what it costs: own DNS servers and TCP responders in a namespace. As root:

    python tests/bench/bench_reachability.py NAMES PING_HZ

The two resolvers give different addresses, from 200 in all. Prints JSON: seconds, seconds for 10,000 names at this rate, CPU.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))

from test_reachability_two_paths import asked, begin, surveyed


def main() -> None:
    count, rate = int(sys.argv[1]), float(sys.argv[2])
    # .3 and .4 are silent or reset: 1 % of the pings
    names = [f"n{i}.example" for i in range(1, count + 1)]
    with tempfile.TemporaryDirectory() as folder, surveyed() as made:
        parameters = asked(Path(folder), names, ping_hz=rate, pings=10, question_hz=max(100.0, rate))
        for left_at_default in ("ping_timeout_s", "dns_timeout_s", "dns_tries"):
            del parameters[left_at_default]
        process = begin(made, parameters)
        out, err = process.communicate(timeout=7200)
        assert process.returncode == 0, err
        last = json.loads(out.splitlines()[-1])
    result = last["result"]
    pings = {w["way"]: w["pings"] for w in result["ways"]}
    print(
        json.dumps(
            {
                "names": count,
                "ping_hz": rate,
                "seconds": round(result["duration_s"], 1),
                "seconds_for_10000_names": round(result["duration_s"] / count * 10_000),
                "cpu_seconds": round(last["environment"]["cpu_seconds"], 1),
                "pings_by_way": pings,
                "unresponsive": {w["way"]: w["unresponsive_share"] for w in result["ways"]},
                "syn_late_ms_max": result["syn_late_ms_max"],
                "rtt_ms_p50": {w["way"]: w["address_rtt_ms"]["p50"] for w in result["ways"]},
            }
        )
    )


if __name__ == "__main__":
    main()
