"""``bandwidth`` and ``delay`` by the running collector, as a campaign's step asks for them: shaped to a ratio, recorded phase by phase."""

from __future__ import annotations

import pytest
from kit_on_rig import KitOnRig, awaited

pytestmark = [pytest.mark.lab, pytest.mark.slow]


def test_bandwidth_over_paths_shaped_to_a_ratio(kit: KitOnRig) -> None:
    shape = ("--shape", "a:up_bit_per_s=4e6", "--shape", "b:up_bit_per_s=1e6")
    own = [f"{k}={v}" for k, v in {"mode": "oneway", "seconds": 1.5, "primary": "a"}.items()]
    setting = [word for pair in own for word in ("--set", pair)]
    (run,) = kit.measured(*setting, "--paths", "a,b", *shape, name="bandwidth")
    assert run["failure"] is None
    (told,) = run["result"]["rounds"]
    assert told["bandwidth_ratio"] >= 1
    assert {p["name"] for p in told["phases"]} == {"tcp a", "tcp b", "tcp-all", "mptcp a"}
    assert told["benefits"][0]["benefit"] is not None
    assert "result_faults" not in run["environment"]["further"]
    row = awaited("the ledger calls it complete", lambda: (r := kit.ledger().get(run["id"])) and not r["missing"] and r)
    assert row["records"]["phase"]["arrived"] == 4
    assert row["records"]["subflow"]["arrived"] == row["records"]["subflow"]["promised"] > 0
    assert row["records"]["run_begun"] == {"promised": 1, "arrived": 1}
    assert row["records"]["aggregation"] == {"promised": 1, "arrived": 1}


def test_delay_in_both_directions(kit: KitOnRig) -> None:
    for mode, timed_at in (("oneway", "agent"), ("reqresp", "server")):
        own = [f"{k}={v}" for k, v in {"mode": mode, "repetitions": 2, "max_bytes": 50_000}.items()]
        setting = [word for pair in own for word in ("--set", pair)]
        (run,) = kit.measured(*setting, "--paths", "a,b", name="delay")
        assert run["failure"] is None
        assert run["result"]["timed_at"] == timed_at
        assert all(b["benefit"] is not None for r in run["result"]["rounds"] for b in r["benefits"])
