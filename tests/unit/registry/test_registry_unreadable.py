"""A manifest that SQLite does not read, as an older gateway kept it, hides no other run."""

from pathlib import Path

from tandem_server.registry import Registry


def test_one_that_is_no_json_hides_no_other(tmp_path: Path) -> None:
    with Registry(tmp_path / "registry.sqlite") as registry:
        registry.probes.add("probe-1")
        for run, manifest in (
            ("run-1", {"kind": "tcp", "level": float("inf")}),
            ("run-2", {"kind": "mptcp", "level": 5.0}),
        ):
            registry.runs.put(run, "probe-1", manifest)
            registry.counted.keep_runs([(run, {"run": 1}, [], 4)])
        assert {(one.id, one.kind) for one in registry.counted.complete_runs()} == {("run-1", ""), ("run-2", "mptcp")}
