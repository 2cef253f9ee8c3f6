"""Where somebody follows docs/quickstart.md: a control machine with an SSH agent, AWS as moto plays it, a card, and what happens between
two commands: AWS starts a machine, the card goes into the kit.

Stand-ins, each for what cannot be here, as seen by the commands:

- AWS is moto's server; its machine is a container whose first boot is the real cloud-init with the user data that AWS was given;
- the card is a file behind a loop device, which ``lsblk`` calls a removable disk;
- the kit is a container: its first boot is the real cloud-init with the FAT partition of that card. It has no disk (no spool partition)
  and no USB, so its two emulated modems are serial ports that `surroundings` names;
- packages come from the tests' archive, and there is no mDNS.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from moto.ec2.models import elastic_ip_addresses
from moto.server import ThreadedMotoServer
from targets import at_server, first_boot, play, provisioned
from targets import ground as grounds
from targets.container_target import booted, kit_cables, laid_out, server_cables
from targets.ground import PROBE, SERVER, Ground
from targets.modems import modems
from targets.printed import Terminal
from targets.vm_target import REPOSITORY

from support import stock_images
from support.moto_aws import OWNER, caller_page, client
from tandem.devtools import find

KIT = "kit-01"
CARD_BYTES = 16 << 30
SUBSTITUTIONS = {
    "ADDRESS-OF-THIS-REPOSITORY": "../repository",
    "YOUR-KEY-ID": "played",
    "YOUR-SECRET-KEY": "not-a-secret",
    "raspios-lite.img.xz": "../../stock/stock.img.xz",
    "/dev/sdX": "",  # the loop device
    f"{KIT}.local": PROBE,
}


def surroundings(ground: Ground, caller: str) -> dict[str, dict[str, Any]]:
    """By file of the fleet: what a user's has not."""
    return {
        "group_vars/servers.yml": {**play.sources(ground), "wireguard_server_user_space": True},
        "group_vars/probes.yml": {**play.sources(ground), **provisioned.KIT_VARIABLES, "tandem_wifi": {}},
        # The container has no second disk, which aws.yml names.
        "host_vars/server.yml": {"data_disk_device": "", "aws_image_owner": OWNER, "aws_caller_url": caller},
    }


class Desk:
    """One walk along the page. ``events``: what happens after the first command that has these words."""

    def __init__(self, ground: Ground, url: str, caller: str, card: Path, agent: str, stack: ExitStack) -> None:
        folder = ground.folder
        self.ground, self.url, self.caller, self.card, self._stack = ground, url, caller, card, stack
        for name in ("home", "user", "bin"):
            (folder / name).mkdir()
        (folder / "home/.ssh").mkdir()
        (folder / "home/.ssh/id_ed25519.pub").write_bytes(ground.key.with_suffix(".pub").read_bytes())
        _lsblk(folder / "bin/lsblk", card)
        self.terminal = Terminal(
            folder / "user",
            {
                "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
                "HOME": str(folder / "home"),
                "SSH_AUTH_SOCK": agent,
                "AWS_URL": url,
                "AWS_EC2_METADATA_DISABLED": "true",
                "PIP_NO_INDEX": "1",
                "ANSIBLE_NOCOLOR": "1",
                "ANSIBLE_HOME": str(folder / "ansible"),
            },
            SUBSTITUTIONS | {"/dev/sdX": str(card)},
        )
        self.happened: set[str] = set()
        self.events: dict[str, Callable[[], None]] = {
            "git clone": self._environment,
            "fleet new": self._surroundings,
            "provision aws": self._machine_starts,
            "kit image": self._card_goes_in,
            "provision probe": self._radio_arrives,
            "fleet trust": self._board_opens,
            "campaign push": self._campaign_is_taken,
        }

    @property
    def fleet(self) -> Path:
        return self.terminal.folder / "fleet"

    def run(self, command: str) -> None:
        """A command of the page, and what happens after it."""
        self.terminal.run(command, f"{self.card}\n" if "--card" in command else "")
        for words, event in self.events.items():
            if words in command:
                event()
                self.happened.add(words)

    def ask(self, command: str) -> str:
        """What a command says at the server, as its administrator."""
        options = ["BatchMode=yes", "ConnectTimeout=5", f"UserKnownHostsFile={self.fleet / 'known_hosts'}"]
        words = ["ssh", "-F", "none", *(word for option in options for word in ("-o", option))]
        env = os.environ | {"SSH_AUTH_SOCK": str(self.terminal.environment["SSH_AUTH_SOCK"])}
        done = subprocess.run(
            [*words, f"admin@{self.address}", command],
            env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        return done.stdout if done.returncode == 0 else ""

    def awaited(self, what: str, command: str, met: Callable[[str], bool], within_s: float = 300.0) -> str:
        """Until the server says so."""
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            if (said := self.ask(command)) and met(said):
                return said
            time.sleep(2.0)
        raise AssertionError(f"not within {within_s:.0f} s: {what}; last: {said[-2000:]}")

    def _environment(self) -> None:
        """What kit would install into the checkout."""
        checkout = self.terminal.folder / "tandem"
        (checkout / ".venv").mkdir()
        for part in (REPOSITORY / ".venv").iterdir():
            if not part.name.startswith(".stamp"):
                (checkout / ".venv" / part.name).symlink_to(part)
        of = (REPOSITORY / ".venv/.stamp-provision").read_text().split("\n")[0]
        (checkout / ".venv/.stamp-provision").write_text(f"{of}\n{checkout}")

    def _surroundings(self) -> None:
        for name, variables in surroundings(self.ground, self.caller).items():
            assert not (self.fleet / name).exists()
            (self.fleet / name).write_text(json.dumps(variables, indent=1))
        kit = self.fleet / f"host_vars/{KIT}.yml"
        told = kit.read_text()
        assert "tandem_paths: found\n" in told
        kit.write_text(told.replace("tandem_paths: found\n", ""))

    def _machine_starts(self) -> None:
        ec2 = client(self.url, "ec2")
        (machine,) = [one for found in ec2.describe_instances()["Reservations"] for one in found["Instances"]]
        told = ec2.describe_instance_attribute(InstanceId=machine["InstanceId"], Attribute="userData")["UserData"][
            "Value"
        ]
        addresses = {
            tag["Value"]: one["PublicIp"] for one in ec2.describe_addresses()["Addresses"] for tag in one["Tags"]
        }
        self.address = next(address for name, address in addresses.items() if name.endswith("-first"))
        root = self._stack.enter_context(laid_out(self.ground, "server", self.ground.own_sources()))
        data = {"user-data": base64.b64decode(told), "meta-data": f"instance-id: {machine['InstanceId']}\n".encode()}
        first_boot.from_aws(root, data)

        @contextmanager
        def cables(pid: int, lan: str) -> Iterator[None]:
            with server_cables(pid, lan):
                for address in sorted(set(addresses.values())):
                    grounds.run(
                        "nsenter", f"--net=/proc/{pid}/ns/net", "ip", "address", "add", f"{address}/32", "dev", "eth0"
                    )
                    grounds.run("ip", "route", "add", f"{address}/32", "dev", "net")
                yield

        self._stack.enter_context(
            booted(self.ground, SERVER, root, cables, answers=lambda: self.ask("echo here") == "here\n")
        )

    def _card_goes_in(self) -> None:
        root = self._stack.enter_context(laid_out(self.ground, KIT, self.ground.own_sources()))
        (root / "boot/firmware").mkdir(parents=True, exist_ok=True)
        for name, text in stock_images.boot_files(self.card).items():
            (root / "boot/firmware" / name).write_text(text)
            (root / "boot/firmware" / name).chmod(0o755)  # as FAT is mounted
        first_boot.from_card(root)
        first_boot.until_it_ends(root)
        assert not (root / "boot/firmware/firstrun.sh").exists()
        # A container has no disk on which the spool's partition could be made.
        (root / "etc/systemd/system/tandem-spool.service").unlink()
        (root / "etc/systemd/system/tandem-spool.service").symlink_to("/dev/null")
        ports = self._stack.enter_context(modems(self.ground.folder / "modems"))
        self._stack.enter_context(booted(self.ground, PROBE, root, kit_cables, ports, answers=lambda: True))
        enrolled = "sudo -u tandem-server tandem-server probe list --json"
        self.awaited("the kit has enrolled", enrolled, lambda said: KIT in said)

    def _radio_arrives(self) -> None:
        def both(said: str) -> bool:
            return {path for path, rows in at_server.by_path(said).items() if rows} == {"a", "b"}

        self.awaited("radio of both modems is in the database", at_server.LEVELS, both)

    def _board_opens(self) -> None:
        """Grafana's page, in the browser of who trusts the fleet, and of nobody else."""
        if (browser := find()) is None:
            return
        for home, opens in ((self.terminal.environment["HOME"], True), (str(self.terminal.folder), False)):
            words = [browser, "--headless", "--no-sandbox", "--dump-dom", f"--user-data-dir={home}/browser"]
            env = os.environ | {"HOME": home}
            done = subprocess.run(
                [*words, f"https://{self.address}/"], env=env, capture_output=True, text=True, check=False, timeout=300
            )
            assert ("Grafana" in done.stdout) is opens, f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
            assert ("ERR_CERT_AUTHORITY_INVALID" in done.stdout + done.stderr) is not opens, done.stderr[-2000:]

    def _campaign_is_taken(self) -> None:
        said = "sudo -u tandem-server tandem-server campaign status mohan-dual-lte --json"
        # It asks every five minutes.
        self.awaited("the kit has the campaign", said, lambda text: KIT in text and '"running"' in text, 900.0)


@contextmanager
def desk(folder: Path, sources: Path) -> Iterator[Desk]:
    """Everything is there, and nothing was typed yet."""
    with ExitStack() as stack:
        ground = stack.enter_context(grounds.ground(folder, sources))
        # moto gives addresses of the loopback, which lead to no machine: these are of a network for documentation.
        addresses = (f"198.51.100.{number}" for number in itertools.count(10))
        stack.enter_context(pytest.MonkeyPatch.context()).setattr(
            elastic_ip_addresses, "random_ip", lambda: next(addresses)
        )
        moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        moto.start()
        stack.callback(moto.stop)
        url = f"http://127.0.0.1:{moto.get_host_and_port()[1]}"
        client(url, "ec2").register_image(
            Name="debian-13-amd64-20260101-1", RootDeviceName="/dev/xvda", Architecture="x86_64"
        )
        (folder / "stock").mkdir()
        stock_images.packed(stock_images.make(folder / "stock", "trixie").path)
        _repository(folder / "repository")
        yield Desk(
            ground, url, stack.enter_context(caller_page()), stack.enter_context(_card(folder / "card")),
            stack.enter_context(_agent(folder / "agent", ground.key)), stack,
        )  # fmt: skip


def _repository(folder: Path) -> None:
    """This checkout as it stands, as a repository to clone."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=REPOSITORY, capture_output=True, check=True
    ).stdout.split(b"\0")  # fmt: skip
    there = b"\0".join(name for name in listed if name and (REPOSITORY / os.fsdecode(name)).is_file())
    folder.mkdir()
    subprocess.run(
        ["sh", "-c", f"tar -C {shlex.quote(str(REPOSITORY))} --null -T - -cf - | tar -xf -"], cwd=folder, input=there, check=True
    )  # fmt: skip
    identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    for words in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-qm", "as it stands"]):
        subprocess.run(["git", *words], cwd=folder, check=True)


@contextmanager
def _card(file: Path) -> Iterator[Path]:
    with file.open("wb") as made:
        made.truncate(CARD_BYTES)
    device = Path(grounds.run("losetup", "--show", "--find", file).strip())
    try:
        yield device
    finally:
        grounds.run("losetup", "--detach", device)


def _lsblk(program: Path, card: Path) -> None:
    """The real one, which calls the loop device a removable disk."""
    program.write_text(
        f"""#!/usr/bin/python3
import json, subprocess, sys
real = subprocess.run(["/usr/bin/lsblk", *sys.argv[1:]], stdout=subprocess.PIPE)
told = json.loads(real.stdout) if real.stdout else {{"blockdevices": []}}
for disk in told["blockdevices"]:
    if disk.get("path") == {str(card)!r}:
        disk.update(type="disk", rm=True, vendor="Tests", model="card in a file")
print(json.dumps(told))
raise SystemExit(real.returncode)
"""
    )
    program.chmod(0o755)


@contextmanager
def _agent(socket: Path, key: Path) -> Iterator[str]:
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL) as agent:
        try:
            while not socket.exists():
                assert agent.poll() is None
                time.sleep(0.05)
            subprocess.run(["ssh-add", "-q", str(key)], env=os.environ | {"SSH_AUTH_SOCK": str(socket)}, check=True)
            yield str(socket)
        finally:
            agent.terminate()
