"""An experiment's process for tests: behaves as the first argument says."""

import json
import signal
import sys
import time
from typing import Any


def line(**content: Any) -> None:
    print(json.dumps(content), flush=True)


def result(parameters: dict[str, Any], failure: dict[str, Any] | None = None, **further: Any) -> None:
    subflows = [
        {"subflow": str(n), "path": p["name"], "operator": p["operator"], "bytes": 500, "share": 0.5, "rtt_ms_median": None,
         "join_delay_ms": None}
        for n, p in enumerate(parameters["paths"], 1)
    ]  # fmt: skip
    measured = {"bytes": 1000, "duration_s": 0.5, "goodput_bit_per_s": 16000.0, "connect_ms": 40.0, "first_byte_ms": 41.0,
                "fallback": False, "subflows": subflows}  # fmt: skip
    told = {"environment": {"scheduler": "default"}, "first": {"path": parameters["path"]}, **further}
    line(type="result", result=measured, failure=failure, **told)


def main(how: str) -> None:
    parameters = json.loads(sys.stdin.read())
    line(type="started", experiment="download", version=1, monotonic_ns=time.monotonic_ns())
    if how == "crash":
        print("no such thing as luck", file=sys.stderr)
        sys.exit(9)
    if how == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:

        def stopped(_number: int, _frame: object) -> None:
            result(parameters, {"reason": "stopped", "retry": False})
            sys.exit(1)

        signal.signal(signal.SIGTERM, stopped)
    print("this is no JSON", flush=True)
    for n in range(3):
        moved = {"goodput_bit_per_s": 8000.0, "bytes_received": 100 * n}
        subflows = [
            {"subflow": str(k), "path": p["name"], "operator": p["operator"], **moved}
            for k, p in enumerate(parameters["paths"], 1)
        ]
        connection = {"goodput_bit_per_s": 16000.0, "bytes": 200 * n, "subflows": len(subflows), "fallback": False}
        line(type="sample", monotonic_ns=time.monotonic_ns(), connection=connection, subflows=subflows)
    line(type="sample", monotonic_ns=time.monotonic_ns(), connection={"bytes": -5}, subflows=[{"subflow": 3}, "x"])
    if how in ("long", "deaf"):
        time.sleep(600)
    if how == "nonsense":
        line(type="result", result={"bytes": -1}, failure=None, environment={})
        return
    if how == "captured":
        none = {"bytes": None, "sha256": None, "packets": None, "packets_dropped": None, "truncated": False}
        refused = {"session": "s", "name": None, **none, "why": "refused: HTTP 429: full"}
        sessions = [refused, {**refused, "session": "t"}]
        result(parameters, server_captures=sessions if parameters["server"]["capture"] else ["nobody asked"])
        return
    result(parameters, {"reason": "connect: timeout", "retry": True} if how == "failure" else None)


if "--describe" in sys.argv:
    from tandem.experiment.base import description
    from tandem.experiment.download import EXPERIMENT

    print(json.dumps(description(EXPERIMENT)))
    sys.exit(0)
main(sys.argv[1])
