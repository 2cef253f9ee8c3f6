"""What ``kit`` fetches into ``build/``: packages bring the libraries they lack."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
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


def test_a_program_that_is_named_goes_first(tmp_path: Path) -> None:
    program(tmp_path, "mine", "#!/bin/sh\n")
    for option, variable in (("influxd", "TANDEM_INFLUXD"), ("modem_manager", "TANDEM_MODEMMANAGER")):
        assert sh(f"{variable}={tmp_path}/mine {option}", tmp_path, tmp_path).stdout == f"{tmp_path}/mine\n"
        assert f"{tmp_path}/none" not in sh(f"{variable}={tmp_path}/none {option}", tmp_path, tmp_path).stdout


def test_kit_finds_its_parts_from_any_folder(tmp_path: Path) -> None:
    done = subprocess.run(["sh", REPOSITORY / "kit", "help"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "./kit test" in done.stdout
