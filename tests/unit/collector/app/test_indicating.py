"""From what the collector's parts know to the state that is shown; a thread that is heard no more; `tandem run` as a process."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from good_config import FILE, GOOD, wrongly_told

from support.https_gateway import Gateway
from support.service_stop_post import stopped
from support.waiting import until
from tandem.app.config import parse
from tandem.app.daemon.indicator import IndicatorControl, Summary
from tandem.app.daemon.status_socket import NoCollectorError, ask
from tandem.indicator.e_paper import Page
from tandem.indicator.lamp import FROZEN_AFTER_S, NAMES, NO_NETWORK_AFTER_S, choose
from tandem.schema.status_led import CHARGE, OFF

S = 1_000_000_000


def brief(**other: Any) -> dict[str, Any]:
    return {
        "alarms": [],
        "health": {"spool_oldest_s": 3.0},
        "modem_health": {"a": {"state": "usable"}, "b": {"state": "usable"}},
        "paths": {"a": {"state": "up"}, "b": {"state": "up"}},
        "measuring": False,
        "sent": 0,
        "utc_ns": None,
        **other,
    }


def shown(summary: Summary, now_s: float, **other: Any) -> str:
    return choose(summary.of(brief(**other), int(now_s * S))).name


def test_what_the_parts_know_is_summed_up():
    for other, state in (
        ({}, "well"),
        ({"health": None}, "well"),
        ({"measuring": True}, "measuring"),
        ({"health": {"spool_oldest_s": 8000.0}}, "data-waiting"),
        ({"alarms": ["disk_low", "throttled"]}, "call"),
        ({"alarms": ["card_worn", "throttled", "plan_over"]}, "well"),
        ({"alarms": ["disk_low", "undervoltage"]}, "charge"),
    ):
        assert shown(Summary(), 0, **other) == state, other


def test_a_modem_counts_as_gone_over_all_its_steps_of_recovery_and_each_for_itself():
    summary = Summary()
    gone = {"a": {"state": "usable"}, "b": {"state": "lost"}}
    assert shown(summary, 0, modem_health=gone) == "well"
    assert shown(summary, 300, modem_health=gone | {"b": {"state": "recovering"}}) == "well"
    assert shown(summary, 600, modem_health=gone) == "call"
    assert shown(summary, 601, modem_health={"a": {"state": "lost"}, "b": {"state": "usable"}}) == "well"
    assert shown(summary, 602) == "well"


def test_no_network_is_none_on_any_path_for_long():
    summary = Summary()
    none = {"a": {"state": "no_address"}, "b": {"state": "down"}}
    assert shown(summary, 0, paths=none) == "well"
    assert shown(summary, NO_NETWORK_AFTER_S, paths=none) == "no-network"
    assert shown(summary, NO_NETWORK_AFTER_S + 1, paths=none | {"b": {"state": "up"}}) == "well"
    assert shown(summary, NO_NETWORK_AFTER_S + 2, paths=none) == "well"


def test_a_thread_that_is_heard_no_more_is_shown_and_the_parts_are_asked_once_a_second():
    now = [0]
    indicating = IndicatorControl(parse(GOOD, FILE), lambda: now[0])
    assert indicating.state().name == "starting"
    indicating.beat(brief)
    assert indicating.state().name == "well"
    assert indicating.status()["led"] is False
    now[0] = int(FROZEN_AFTER_S * S)
    assert indicating.state().name == "not-running"
    indicating.beat(brief)
    assert indicating.state().name == "well"
    indicating.stopping()
    assert indicating.state().name == "stopping"
    indicating.close()
    assert indicating.status()["state"] == "not-running"
    asked = []
    indicating = IndicatorControl(parse(GOOD, FILE), lambda: now[0])
    for now[0] in range(0, 3 * S, S // 10):
        indicating.beat(lambda: asked.append(now[0]) or brief())
    assert asked == [0, S, 2 * S]


def test_the_paper_says_what_the_light_says_and_off_at_the_end():
    pages: list[Page] = []
    text = GOOD + '\n[e_paper]\nenabled = true\ncall = "Ana, 555 0100"\n'
    indicating = IndicatorControl(parse(text, FILE), lambda: 0, pages.append)
    indicating.beat(lambda: brief(utc_ns=10 * 3600 * S, sent=4, alarms=["undervoltage"]))
    indicating.start()
    indicating.close()
    assert pages[-1] == Page("probe-1", OFF, "Ana, 555 0100", "Sent: within the hour", "as of 1 Jan 10:00")
    assert [page.state for page in pages[:-1]] in ([], [CHARGE])
    assert indicating.status()["paper_refreshes"] == len(pages)


def test_what_cannot_be_is_named_with_its_line():
    led, paper = f"{GOOD}\n[status_led]\n", f"{GOOD}\n[e_paper]\n"
    rows = [
        (f'{led}red = "a/b"\n', "red", "status_led.red: 'a/b' is no name of an LED; hint: as ls /sys/class/leds"),
        (f'{led}only = "ACT"\nblue = "x"\n', "blue", "status_led.blue and status_led.only are both given"),
        (f'{paper}call = "{"9" * 41}"\n', "call", "e_paper.call: 41 letters are more than the paper has room for"),
        (f'{paper}spi = "spidev0.0"\n', "spi", "'spidev0.0' is no device; hint: as in /dev/spidev0.0"),
        (f"{paper}busy = 64\n", "busy", "e_paper.busy: 64 is above 63"),
        (f"{paper}busy = 23\n", "busy", "e_paper.reset and busy are both GPIO 23; hint: one GPIO each"),
    ]
    assert wrongly_told(rows) == []


# --- `tandem run` as a process, with a folder as the kernel's LEDs: what the light says from the start to each of its ends


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
        text = GOOD.replace("https://server.tandem.test:8443", gateway.url)
        text = text.replace('"ca.pem"', f'"{gateway.ca}"').replace('"token"', f'"{gateway.token_file}"')
        (folder / "config.toml").write_text(text.split("[sysctl]")[0] + LED)
        (folder / "hold").touch()
        command = [sys.executable, str(Path(__file__).with_name("run_on_doubles.py")), str(folder / "config.toml")]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

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
def kit(tmp_path, gateway):
    made = Kit(tmp_path, gateway)
    yield made
    made.process.kill()
    made.process.wait()
    made.process.stdout.close()


def test_from_the_start_over_a_weak_supply_to_an_orderly_end(kit):
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
def test_killed_it_leaves_the_light_as_it_was_and_the_unit_makes_it_steady(kit, when):
    kit.ready()
    until(lambda: kit.indicator().get("state") == "well")
    until(lambda: kit.lit() == {"green"})
    until(lambda: kit.lit() == when)
    kit.process.kill()
    kit.process.wait()
    stopped(kit.leds)
    assert kit.lit() == {"red"}
