"""Other releases of the collector: one whose installation or trial a power cut interrupts, and a configuration that does not measure."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jinja2
import yaml
from targets import play, provisioned
from targets.disk import Settled
from targets.ground import PROBE, Seed
from targets.play import Played
from targets.story import STEPS_S, Story
from targets.vm_target import REPOSITORY, VmTarget

ROLES = REPOSITORY / "ansible/roles"
HOME = Path("/opt/tandem")


def wheel(folder: Path, version: str) -> Path:
    """This checkout's collector under another version, as the playbook builds it."""
    source = folder / version / "collector"
    shutil.copytree(REPOSITORY / "collector", source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for file, text, other in (
        ("pyproject.toml", '\nversion = "0.1.0"', f'\nversion = "{version}"'),
        ("src/tandem/__init__.py", '"0.1.0"', f'"{version}"'),
    ):
        path = source / file
        assert path.read_text().count(text) == 1, file
        path.write_text(path.read_text().replace(text, other))
    argv = ["sh", ROLES / "tandem/files/build-wheels", folder / "wheels", sys.executable, "", source]
    release = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()
    (made,) = (folder / "wheels" / release).glob("*.whl")
    return made


def seed(folder: Path) -> Seed:
    """The wheel of version 9.0.0 where the playbook copies it."""
    made = wheel(folder, "9.0.0")
    return {str((HOME / made.name).relative_to("/")): (made.read_bytes(), 0o644)}


def state(story: Story) -> dict[str, str]:
    """Where the links of the kit's releases lead; empty for one that is not there."""
    said = story.told(
        PROBE, f"cd {HOME}; for name in current before previous; do echo $name $(readlink -f $name); done"
    )
    return {name: to for name, _, to in (line.partition(" ") for line in said.splitlines())}


def installing(story: Story) -> tuple[str, str]:
    """What role ``collector`` runs on a probe to install version 9.0.0 (its own text), and the program's folder."""
    name = story.told(PROBE, f"cd {HOME}; ls *.whl").strip()
    tasks = yaml.safe_load((ROLES / "collector/tasks/install.yml").read_text())
    (block,) = (task["block"] for task in tasks if "block" in task)
    (shell,) = (task["ansible.builtin.shell"] for task in block if "ansible.builtin.shell" in task)
    program = HOME / "programs" / name.split("-")[1]
    python = story.told(PROBE, "python3 -c 'import sys; print(*sys.version_info[:2], sep=str(chr(46)))'").strip()
    values = {"collector_program": str(program), "collector_brought": name}
    values["collector_whole"] = f"{program}/lib/python{python}/.whole"
    templates = jinja2.Environment(undefined=jinja2.StrictUndefined)  # noqa: S701
    templates.filters["basename"] = lambda path: Path(path).name
    return templates.from_string(shell["cmd"]).render(values), str(program)


def running(story: Story) -> str:
    """The folder of the program that runs."""
    return story.told(PROBE, f"dirname $(readlink -f {HOME}/current/bin)").strip()


def laid_out(story: Story, program: str) -> str:
    """A release of that program with the configuration of the one that runs, as role ``collector`` lays it out: its folder."""
    release = f"{HOME}/releases/{Path(program).name}-0123456789ab"
    story.told(PROBE, f"sudo cp -a $(readlink -f {HOME}/current) {release} && sudo ln -sfn {program}/bin {release}/bin")
    return release


def trying(release: str) -> str:
    """What role ``collector`` runs to change to that release."""
    tasks = yaml.safe_load((ROLES / "collector/tasks/release.yml").read_text())
    (block,) = (task["block"] for task in tasks if "block" in task)
    text: str = block[0]["ansible.builtin.shell"]["cmd"]
    return jinja2.Template(text, undefined=jinja2.StrictUndefined).render(collector_folder=release)


def cut(story: Story, target: VmTarget, command: str, instant: str) -> Settled:
    """``command`` is under way; at the ``instant`` (words of test(1)) the power goes."""
    looks = f"for look in $(seq 200); do [ {instant} ] && exit 0; sleep 0.2; done; exit 1"
    argv = story.ground.ssh_to(PROBE, f"sudo sh -c {shlex.quote(command)}")
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL) as working:
        try:
            while story.ground.ssh(PROBE, looks, STEPS_S).returncode != 0:
                assert working.poll() is None, f"ended with {working.returncode} before its power went"
            settled = target.cut_power()
            assert working.poll() is None, "ended before its power went"
        finally:
            working.kill()  # from a machine without power no word comes: it would wait for minutes
    return settled


def played(story: Story, log: str, **variables: Any) -> Played:
    """The unchanged playbook's collector on the kit, with these variables besides."""
    limits = {"collector_healthy_within_s": 60, "collector_steady_s": 5}
    inventory = play.inventory(
        story.ground, provisioned.SERVER_VARIABLES, dict(provisioned.KIT_VARIABLES) | limits | variables, log
    )
    return play.play(story.ground, "probe.yml", inventory, "--tags", "collector", log=log)
