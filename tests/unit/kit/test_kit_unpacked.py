"""What ``kit`` fetches into ``build/``: the virtual machine is skipped only where none is known; packages bring the libraries they lack."""

import importlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
MACHINE = REPOSITORY / "tests" / "system" / "vm"
DEBIAN = {"ID": "debian", "VERSION_ID": "12"}


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(MACHINE))
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    module = importlib.import_module("build")
    assert Path(str(module.__file__)) == MACHINE / "build.py"
    monkeypatch.setattr(module, "os_release", lambda: DEBIAN)
    return module


@pytest.mark.parametrize(
    ("release", "processor"), [({"ID": "fedora"}, "x86_64"), ({}, "x86_64"), (DEBIAN, "aarch64"), (DEBIAN, "armv7l")]
)
def test_none_is_known_for_another_system(build, monkeypatch, capsys, tmp_path, release, processor) -> None:
    monkeypatch.setattr(build, "os_release", lambda: release)
    monkeypatch.setattr(platform, "machine", lambda: processor)
    for argument in ("--known", str(tmp_path / "vm")):
        assert build.main([argument]) == 4
        said = capsys.readouterr().err
        assert said.startswith("vm: no machine for ")
        assert processor in said
    assert not (tmp_path / "vm").exists(), "decided before anything is made"


def test_a_build_that_fails_is_not_an_unknown_system(build, monkeypatch, capsys, tmp_path) -> None:
    def lists_are_absent(*_: object, **__: object) -> str:
        raise build.BuildError("linux-image-amd64 is not to be had: E: No packages found")

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(build, "_run", lists_are_absent)
    assert build.main([str(tmp_path / "vm")]) == 3
    assert capsys.readouterr().err == "vm: linux-image-amd64 is not to be had: E: No packages found\n"


STUBS = """
set -eu
say() { printf 'kit: %s\\n' "$*" >&2; }
die() { say "$1"; exit 3; }
has() { command -v "$1" >/dev/null; }
want() { :; }
install_wanted() { :; }
system_python() { printf '%s\\n' "$PYTHON"; }
as_root() { printf 'as root: %s\\n' "$*" >&2; "$@"; }
"""
"""What kit itself does before it asks for something unpacked."""


def sh(commands: str, here: Path, programs: Path) -> subprocess.CompletedProcess[str]:
    """``commands`` with the functions of ``unpacked.sh``; ``programs`` stand before the system's."""
    script = f'{STUBS}\nhere={here}; build={here}/build\n. "{REPOSITORY}/requirements/unpacked.sh"\n{commands}'
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "PYTHON": sys.executable}
    return subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True, check=False)


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


def virtual_machine(tmp_path: Path, known: int, builds: list[int]) -> subprocess.CompletedProcess[str]:
    """kit's step with a builder that ends with these statuses, one after another."""
    builder = tmp_path / "tests" / "system" / "vm" / "build.py"
    builder.parent.mkdir(parents=True)
    builder.write_text(
        "import pathlib, sys\n"
        f"left = pathlib.Path({str(tmp_path / 'left')!r})\n"
        f"if sys.argv[1] == '--known': print('vm: as requested', file=sys.stderr); sys.exit({known})\n"
        f"assert sys.argv[1] == {str(tmp_path / 'build/vm')!r}\n"
        "status, *more = left.read_text().split()\n"
        "left.write_text(' '.join(more)); print('vm: built', status, file=sys.stderr); sys.exit(int(status))\n"
    )
    (tmp_path / "left").write_text(" ".join(map(str, builds)))
    program(tmp_path / "programs", "apt-get", "#!/bin/sh\nexit 0\n")
    return sh("virtual_machine", tmp_path, tmp_path / "programs")


@pytest.mark.parametrize(
    ("known", "builds", "status", "said", "updates"),
    [
        (4, [], 0, "its tests are skipped", 0),
        (0, [3, 3], 3, "vm: built 3\nkit: the tests' virtual machine could not be made; the line above says why\n", 1),
        (1, [], 3, "vm: as requested", 0),
        (0, [3, 0], 0, "vm: built 0", 1),
        (0, [0], 0, "vm: as requested", 0),
    ],
    ids=["none is known", "cannot be built", "the builder does not run", "old lists cost one more build", "is there"],
)
def test_kit_goes_on_without_a_machine_only_where_none_is_known(tmp_path, known, builds, status, said, updates) -> None:
    done = virtual_machine(tmp_path, known, builds)
    assert (done.returncode, done.stderr.count("as root: apt-get update")) == (status, updates)
    assert said in done.stderr
    assert ("skipped" in done.stderr) == (known == 4)
    assert (tmp_path / "left").read_text() == ""


def debian_package(folder: Path, name: str, files: dict[str, str]) -> None:
    tree = folder / f"tree-{name}"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(
        f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: made here\n"
    )
    for path, text in files.items():
        program((tree / path).parent, Path(path).name, text)
    subprocess.run(["dpkg-deb", "--build", tree, folder / f"{name}_1_all.deb"], capture_output=True, check=True)


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb not found; hint: apt-get install dpkg")
def test_packages_come_with_the_libraries_that_lack_and_run_beside_them(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    debian_package(archive, "made-here", {"usr/sbin/made-here": '#!/bin/sh\necho "$1 $LD_LIBRARY_PATH"\n'})
    debian_package(archive, "libmade-here1", {"usr/lib/x86_64-linux-gnu/liba.so": ""})
    debian_package(archive, "libmade-here2", {"usr/lib/x86_64-linux-gnu/libb.so": ""})
    apt = f"""#!/bin/sh
case "$1 $2" in
    "install -s") printf 'Inst %s (1 local [all])\\nConf x\\n' libmade-here2 libmade-here1 adduser made-here ;;
    "download -qq") shift 2; for name in "$@"; do cp {archive}/"$name"_*.deb . || exit 1; done ;;
esac
"""
    program(tmp_path / "programs", "apt-get", apt)
    done = sh(
        'unpack_packages "$build/it.tmp" made-here; beside_its_libraries "$build/it.tmp" usr/sbin/made-here\n'
        'keep_unpacked "$build/it.tmp" it; "$build/it/made-here" word',
        tmp_path,
        tmp_path / "programs",
    )
    libraries = tmp_path / "build/it/root/usr/lib/x86_64-linux-gnu"
    assert (done.returncode, done.stdout) == (0, f"word {libraries}\n"), done.stderr
    assert sorted(file.name for file in libraries.iterdir()) == ["liba.so", "libb.so"]
    assert [path.name for path in (tmp_path / "build").iterdir()] == ["it"], "nothing half made is left"


def test_a_package_that_is_not_to_be_had_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    program(tmp_path / "programs", "apt-get", "#!/bin/sh\n[ $1 = update ]\n")
    done = sh('unpack_packages "$build/it.tmp" one two || echo "not had"', tmp_path, tmp_path / "programs")
    assert done.stdout == "not had\n"
    assert "kit: not to be had: one two" in done.stderr
    assert done.stderr.count("as root: apt-get update") == 1
    assert not (tmp_path / "build/it.tmp").exists()


@pytest.mark.parametrize(
    ("option", "variable"), [("influxd", "TANDEM_INFLUXD"), ("modem_manager", "TANDEM_MODEMMANAGER")]
)
def test_a_program_that_is_named_goes_first(tmp_path: Path, option: str, variable: str) -> None:
    program(tmp_path, "mine", "#!/bin/sh\n")
    assert sh(f"{variable}={tmp_path}/mine {option}", tmp_path, tmp_path).stdout == f"{tmp_path}/mine\n"
    assert f"{tmp_path}/none" not in sh(f"{variable}={tmp_path}/none {option}", tmp_path, tmp_path).stdout


def test_kit_finds_its_parts_from_any_folder(tmp_path: Path) -> None:
    done = subprocess.run(["sh", REPOSITORY / "kit", "help"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "./kit test" in done.stdout
