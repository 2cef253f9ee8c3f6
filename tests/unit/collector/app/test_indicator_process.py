"""`tandem run` as a process, with a folder as the kernel's LEDs: what the light says from the start to each of its ends."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.https_gateway import Gateway
from support.service_stop_post import stopped
from support.waiting import until
from tandem.app.daemon.status_socket import NoCollectorError, ask
from tandem.indicator.lamp import NAMES

HERE = Path(__file__).parent
LED = '[status_led]\nenabled = true\nfolder = "leds"\n'


class Kit:
    """The process, its LEDs, and its machine's supply."""

    def __init__(self, folder: Path, gateway: Gateway) -> None:
        self.folder, self.leds = folder, folder / "leds"
        for name in NAMES.values():
            (self.leds / name).mkdir(parents=True)
            (self.leds / name / "max_brightness").write_text("1\n")
            (self.leds / name / "brightness").write_text("0\n")
            (self.leds / name / "trigger").write_text("[none] timer\n")
        supply = folder / "sys/class/hwmon/hwmon0"
        supply.mkdir(parents=True)
        (supply / "name").write_text("rpi_volt\n")
        self.low = supply / "in0_lcrit_alarm"
        self.low.write_text("0\n")
        text = (HERE / "good.toml").read_text().replace("https://server.tandem.test:8443", gateway.url)
        text = text.replace('"ca.pem"', json.dumps(str(gateway.ca))).replace(
            '"token"', json.dumps(str(gateway.token_file))
        )
        (folder / "config.toml").write_text(text.split("[sysctl]")[0] + LED)
        (folder / "hold").touch()
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "run_on_doubles.py"), str(folder / "config.toml")],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ready(self) -> None:
        """Let it come to the end of its start."""
        (self.folder / "hold").unlink()
        assert self.process.stdout.readline() == "ready\n"

    def lit(self) -> frozenset[str]:
        """The channels that are lit."""
        files = {channel: (self.leds / name / "brightness") for channel, name in NAMES.items()}
        return frozenset(channel for channel, file in files.items() if file.read_text().strip() not in ("", "0"))

    def indicator(self) -> dict[str, object]:
        try:
            (status,) = ask(self.folder / "status.sock", {"op": "status"})
        except NoCollectorError:
            return {}
        told: dict[str, object] = status["indicator"]
        return told


@pytest.fixture
def kit(tmp_path: Path, gateway: Gateway) -> Iterator[Kit]:
    made = Kit(tmp_path, gateway)
    yield made
    made.process.kill()
    made.process.wait()
    made.process.stdout.close()


def test_from_the_start_over_a_weak_supply_to_an_orderly_end(kit: Kit) -> None:
    kit.low.write_text("1\n")
    until(lambda: kit.lit() == {"blue"})  # starting
    kit.ready()
    until(lambda: kit.indicator().get("state") == "charge")
    told = kit.indicator()
    assert told["do"].startswith("Charge")
    assert told["led"] is True
    assert (told["led_failures"], told["led_trouble"]) == (0, None)
    assert told["holding"][-1] == "well"
    until(lambda: kit.lit() == {"red", "green"})
    until(lambda: kit.lit() == set())  # it blinks
    kit.process.send_signal(signal.SIGTERM)
    assert kit.process.wait(60) == 0
    assert kit.lit() == {"red"}


@pytest.mark.parametrize("when", [set(), {"green"}], ids=["while dark", "while lit"])
def test_killed_it_leaves_the_light_as_it_was_and_the_unit_makes_it_steady(kit: Kit, when: set[str]) -> None:
    kit.ready()
    until(lambda: kit.indicator().get("state") == "well")
    until(lambda: kit.lit() == {"green"})
    until(lambda: kit.lit() == when)
    kit.process.kill()
    kit.process.wait()
    stopped(kit.leds)
    assert kit.lit() == {"red"}
