"""The tiers of ``./kit test``, in a small checkout of their own whose checks are programs that do nothing."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2]))

from tiers import pool
from tiers.changed import chosen, source
from tiers.plan import Job, Table, TableError, check_jobs, shard, unit_files

REPOSITORY = Path(__file__).resolve().parents[3]
PROGRAMS = ("make", "mypy", "ruff", "lint-imports", "cargo", "shellcheck", "yamllint", "ansible-lint", "python")
TABLE = """
[test]
[all]
[run]
machine = []
alone = []
later = ["unit/late/test_late.py"]
[together]
[touches]
"docs/*" = ["unit/b"]
"""
GOOD = "def test_good():\n    with open('runs', 'a') as runs:\n        runs.write('.')\n"
BAD = "def test_bad():\n    width = 3\n    assert width == 4, 'the width'\n"


class Checkout:
    """``one_processor``: a run has one worker of pytest's, which has little to start."""

    def __init__(self, root: Path) -> None:
        self.root, self.one_processor = root, True
        for folder in ("ansible", "requirements", "collector/src/tandem", "tests/lab", "tests/system"):
            (root / folder).mkdir(parents=True)
        shutil.copytree(REPOSITORY / "tests/tiers", root / "tests/tiers", ignore=shutil.ignore_patterns("__pycache__"))
        self.write("tests/tiers.toml", TABLE)
        self.write("pyproject.toml", "[tool.pytest.ini_options]\n")
        self.write(".gitignore", "/build/\n__pycache__/\n/programs/\n/runs\n")
        for name in PROGRAMS:
            self.program(name, "exit 0")
        self.git("init", "-q", "-b", "main")

    def write(self, name: str, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def program(self, name: str, text: str) -> None:
        self.write(f"programs/{name}", f"#!/bin/sh\n{text}\n")
        (self.root / "programs" / name).chmod(0o755)

    def git(self, *words: str) -> None:
        argv = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        subprocess.run(argv, cwd=self.root, check=True, capture_output=True)

    def begin(self, *options: str) -> subprocess.Popen[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "TANDEM_"))}
        environment |= {"PATH": f"{self.root}/programs:{os.environ['PATH']}", "PYTHONPATH": str(self.root / "tests")}
        own = sorted(os.sched_getaffinity(0))[: 1 if self.one_processor else None]
        argv = ["taskset", "--cpu-list", ",".join(map(str, own)), sys.executable, "-m", "tiers", *options]
        pipe = subprocess.PIPE
        return subprocess.Popen(argv, cwd=self.root, env=environment, stdout=pipe, stderr=pipe, text=True)

    def run(self, *options: str) -> tuple[int, str, str]:
        process = self.begin(*options)
        printed, said = process.communicate()
        return process.returncode, printed, said

    def recorded(self, outcome: str) -> bool:
        """Whether a test that ended so is in the results."""
        results = self.root.glob("build/tests/*/*.jsonl")
        return any(f'"outcome": "{outcome}"' in file.read_text() for file in results)

    @property
    def runs(self) -> int:
        return (self.root / "runs").stat().st_size if (self.root / "runs").exists() else 0


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_a_green_run_ends_with_tests_time_slowest_and_skips(checkout: Checkout) -> None:
    checkout.write("tests/unit/a/test_a.py", GOOD)
    checkout.write("tests/unit/b/test_b.py", "import pytest\ndef test_b():\n    pytest.skip('no modem here')\n")
    status, printed, said = checkout.run("--json", str(checkout.root / "told.json"))
    assert status == 0, printed + said
    lines = printed.splitlines()
    assert lines[-1] == "1 passed, 0 failed, 1 skipped"
    assert lines[-2].startswith("green: 11 checks, 2 files of tests, 0 min ")
    assert any(line.endswith(" s  tests/unit/a/test_a.py::test_good") for line in lines)
    assert "    1  tests/unit/b/test_b.py: no modem here" in lines
    told = json.loads((checkout.root / "told.json").read_text())
    assert (told["green"], told["tier"], told["passed"], told["skipped"]) == (True, "test", 1, 1)
    assert told["files"]["tests/unit/a/test_a.py"]["outcome"] == "passed"
    assert told["jobs"]["mypy --strict"]["outcome"] == "passed"


def test_roles_that_passed_are_not_linted_again_until_one_changes(checkout: Checkout) -> None:
    (job,) = [one for one in check_jobs(everything=False) if one.name == "ansible-lint"]
    checkout.write("ansible/roles/a.yml", "---\n")
    checkout.write("requirements/lock.txt", "ansible-lint==1\n")

    def linted(verdict: str) -> tuple[int, bool]:
        """Its status, and whether ansible-lint was started."""
        (checkout.root / "linted").unlink(missing_ok=True)
        checkout.program("ansible-lint", f"pwd >../linted; {verdict}")
        environment = os.environ | {"PATH": f"{checkout.root}/programs:{os.environ['PATH']}"}
        done = subprocess.run(job.argv, cwd=checkout.root, env=environment, capture_output=True, check=False)
        return done.returncode, (checkout.root / "linted").exists()

    assert linted("exit 2") == (2, True)
    assert linted("exit 0") == (0, True), "what failed is linted again"
    assert linted("exit 2") == (0, False)
    for changed in ("ansible/roles/a.yml", "ansible/roles/new.yml", "requirements/lock.txt"):
        checkout.write(changed, "# other\n")
        assert linted("exit 0") == (0, True), changed
    (checkout.root / "ansible/roles/new.yml").unlink()
    assert linted("exit 0") == (0, True)
    assert linted("exit 0") == (0, False)


def test_a_red_run_names_each_failure_its_assertion_and_the_command_that_runs_it_alone(checkout: Checkout) -> None:
    checkout.write("tests/unit/a/test_a.py", GOOD + BAD)
    checkout.write("tests/unit/b/test_b.py", "import a_module_that_is_not_there\n")
    checkout.write("tests/unit/c/test_c.py", "import os\ndef test_gone():\n    os._exit(9)\n")
    checkout.program("mypy", "echo 'a.py:3: error: no'; exit 1")
    checkout.one_processor = False  # a worker dies: another one goes on
    status, printed, said = checkout.run()
    assert status == 1, said
    lines = printed.splitlines()
    assert "FAILED tests/unit/a/test_a.py::test_bad" in lines
    assert "  AssertionError: the width assert 3 == 4" in lines
    assert "  alone: ./kit test 'tests/unit/a/test_a.py::test_bad'" in lines
    assert "  alone: ./kit test 'tests/unit/b/test_b.py'" in lines
    assert "  ModuleNotFoundError: No module named 'a_module_that_is_not_there'" in printed
    assert "FAILED tests/unit/c/test_c.py::test_gone" in lines, "a worker that died"
    assert "  a.py:3: error: no" in lines
    assert "  alone: ./kit run mypy --no-error-summary" in lines
    assert lines[-1] == "1 passed, 4 failed, 0 skipped"


def test_all_goes_on_where_it_was_and_begins_anew_for_another_tree(checkout: Checkout) -> None:
    checkout.write("tests/unit/a/test_a.py", GOOD)
    needs = "from pathlib import Path\ndef test_b():\n    assert Path('runs.b').exists()\n"
    checkout.write("tests/unit/b/test_b.py", needs)
    checkout.write(".gitignore", "/build/\n__pycache__/\n/programs/\n/runs*\n")
    assert checkout.run("--all")[0] == 1
    assert not (checkout.root / "tests/all.json").exists(), "only what passed whole is kept"
    (checkout.root / "runs.b").touch()
    status, printed, said = checkout.run("--all")
    assert status == 0, printed
    assert "passed before for this very tree" in said
    assert (checkout.runs, printed.splitlines()[-1]) == (1, "2 passed, 0 failed, 0 skipped")
    assert json.loads((checkout.root / "tests/all.json").read_text())["green"]
    assert checkout.run("--all", "--list")[1] == "", "what is kept of the run is no change of the tree"
    assert "tests/unit/a/test_a.py" in checkout.run("--all", "--fresh", "--list")[1]
    checkout.write("docs/a.md", "more")
    checkout.write("tests/unit/late/test_late.py", GOOD)
    assert "test_late.py" not in checkout.run("--list")[1]
    listed = checkout.run("--all", "--list")[1]
    assert {"tests/unit/a/test_a.py", "tests/unit/late/test_late.py"} <= set(listed.split())


def test_one_at_a_time_and_stopped_by_ctrl_c_it_leaves_nothing_running_and_blames_no_test(checkout: Checkout) -> None:
    checkout.write("tests/unit/a/test_a.py", GOOD)
    waits = (
        "import os, pathlib, signal\n"
        "def test_waits():\n    pathlib.Path('build/pid').write_text(str(os.getpid()))\n    signal.pause()\n"
    )
    checkout.write("tests/unit/b/test_b.py", waits)
    process = checkout.begin("--all")
    pid = checkout.root / "build/pid"
    deadline = time.monotonic() + 120
    while not (pid.exists() and pid.read_text() and checkout.recorded("passed")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    status, _, said = checkout.run()
    assert (status, "another one runs" in said) == (3, True)
    process.send_signal(signal.SIGINT)
    printed, said = process.communicate()
    assert process.returncode == 130, said
    assert "FAILED tests" not in printed
    left = Path("/proc", pid.read_text(), "stat")
    assert not left.exists() or left.read_text().split()[2] == "Z", "ended, if not yet taken note of"
    listed = checkout.run("--all", "--list")[1]
    assert "test_b.py" in listed
    assert "test_a.py" not in listed, "its file had passed"


@pytest.mark.parametrize(("avg10", "together"), [("99.00", 1), ("12.00", 3)])
def test_no_more_than_are_sure_begin_while_the_processors_are_crowded(avg10, together, tmp_path, monkeypatch):
    """Each of three jobs says how many it saw at once, and waits for all of them where they may be."""
    monkeypatch.setattr(pool, "SETTLED_S", 0.0)
    (tmp_path / "cpu").write_text(f"some avg10={avg10} avg60=50.00 avg300=50.00 total=1\nfull avg10=0.00 total=0\n")
    for name in ("results", "here"):
        (tmp_path / name).mkdir()
    told = f"""
        cd {tmp_path}/here && touch $$
        n=0; while [ "$(ls | wc -l)" -lt 3 ] && [ $n -lt {5 if together == 1 else 600} ]; do sleep 0.1; n=$((n+1)); done
        ls | wc -l >> ../seen; n=0
        while [ "$(wc -l < ../seen)" -lt {together} ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n+1)); done
        rm $$"""
    jobs = [Job(f"job {n}", "wait", ("sh", "-c", told)) for n in range(3)]
    pool.Pool(tmp_path / "results", {"wait": 3, "alone": 1}, None, sure=1, pressure=tmp_path / "cpu").run(jobs)
    assert (tmp_path / "seen").read_text().split() == [str(together)] * 3


def test_options_that_mean_nothing_are_refused(checkout: Checkout) -> None:
    checkout.write("tests/unit/a/test_a.py", GOOD)
    for options, word in (
        (["--shard", "1/2"], "--all"),
        (["--all", "--shard", "3/2"], "I/N"),
        (["--changed", "nowhere"], "hint:"),
        (["--changed", "--all"], "not allowed"),
    ):
        status, _, said = checkout.run(*options)
        assert (status, word in said) == (2, True), said
        assert "Traceback" not in said


def test_changed_says_why_each_file_is_chosen(checkout: Checkout) -> None:
    checkout.write("collector/src/tandem/__init__.py", "")
    checkout.write("collector/src/tandem/paths.py", "from tandem import routes\n")
    checkout.write("collector/src/tandem/routes.py", "")
    checkout.write("tests/unit/a/helper.py", "def late():\n    import tandem.paths\n")
    checkout.write("tests/unit/a/test_a.py", "import helper\n" + GOOD)
    checkout.write("tests/unit/b/test_b.py", GOOD)
    checkout.write("docs/a.md", "")
    checkout.git("add", "-A")
    checkout.git("commit", "-qm", "all")
    assert "0 files differ" in checkout.run("--changed", "HEAD", "--list")[2]
    checkout.write("collector/src/tandem/routes.py", "import os\n")
    _, listed, said = checkout.run("--changed", "HEAD", "--list")
    assert "tests/unit/a/test_a.py" in listed
    assert "tests/unit/a/test_a.py: imports collector/src/tandem/routes.py by tests/unit/a/helper.py" in said
    assert "test_b.py" not in said + listed
    checkout.write("docs/b.md", "new")
    _, listed, said = checkout.run("--changed", "HEAD", "--list")
    assert "tests/unit/b/test_b.py: docs/b.md (tests/tiers.toml: docs/*)" in said
    assert "tests/unit/b/test_b.py" in listed


def test_the_lab_is_chosen_by_what_it_covers(checkout: Checkout) -> None:
    covers = '"lab/test_paths.py" = ["tandem.mptcp"]\n"lab/test_page.py" = ["tandem.devtools"]\n'
    checkout.write("tests/tiers.toml", TABLE.replace("[test]\n", f"[test]\n{covers}"))
    for name in ("paths", "page"):
        checkout.write(f"tests/lab/test_{name}.py", GOOD)
    table = Table(checkout.root / "tests/tiers.toml", checkout.root)
    why = chosen(["collector/src/tandem/mptcp/paths.py"], table, checkout.root)
    assert why == {"tests/lab/test_paths.py": "covers collector/src/tandem/mptcp/paths.py"}


def test_every_file_of_the_lab_has_one_tier_and_covers_what_is_there() -> None:
    table = Table()
    covered = {of for all_of in table.covers.values() for of in all_of}
    assert [of for of in covered if not list(REPOSITORY.glob(source(of) + "*"))] == []
    named = {name for group in table.together for name in group} | table.machines | table.alone | table.later
    assert named <= {*table.covers, *unit_files()}
    tests = REPOSITORY / "tests"
    assert [name for names in table.touches.values() for name in names if not (tests / name).exists()] == []


def test_a_file_that_the_table_does_not_know_is_refused(checkout: Checkout) -> None:
    checkout.write("tests/lab/test_new.py", GOOD)
    with pytest.raises(TableError, match=r"tests/lab/test_new\.py"):
        Table(checkout.root / "tests/tiers.toml", checkout.root)


def test_shards_part_all_jobs() -> None:
    jobs = [Job(f"job {number}", "wait", ()) for number in range(10)]
    seconds = {"job 3": 100.0, "job 4": 40.0}
    parts = [{job.name for job in shard(jobs, f"{part}/3", seconds)} for part in (1, 2, 3)]
    assert set.union(*parts) == {job.name for job in jobs}
    assert sum(map(len, parts)) == len(jobs)
    assert {"job 3"} in parts, "the long one has a machine of its own"
