from pathlib import Path

import pytest


@pytest.fixture
def leds(tmp_path: Path) -> Path:
    """A folder like /sys/class/leds on a Raspberry Pi, the red LED with the kernel's own trigger."""
    for channel in ("red", "green", "blue"):
        led = tmp_path / "leds" / f"tandem:{channel}:status"
        led.mkdir(parents=True)
        (led / "brightness").write_text("0\n")
        (led / "max_brightness").write_text("255\n")
        (led / "trigger").write_text("none timer [default-on]\n" if channel == "red" else "[none] timer default-on\n")
    return tmp_path / "leds"
