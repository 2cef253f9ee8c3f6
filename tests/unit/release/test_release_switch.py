"""To another release, and back when it does not measure as the one before did."""

import shutil

import pytest
from release_kit import FakeService, status
from tandem_release import disk, place
from tandem_release import switch as switching
from tandem_release.disk import ReleaseError
from tandem_release.switch import Limits, Switch

LIMITS = (900.0, 60.0, 10.0)


def switch(kit, service):
    return Switch(kit.place, service, Limits(*LIMITS), clock=lambda: service.now_s, pause=service.pause)


@pytest.fixture
def measuring(kit):
    """A probe with release 1.0 in place and 2.0 beside it."""
    for version in ("1.0", "2.0"):
        kit.install(version)
    kit.stage(config="old", unit="old unit")
    kit.place.put("1.0")
    kit.stage(config="new", unit="new unit", authority="new")
    return kit


def test_a_healthy_release_stays(measuring):
    service = FakeService(measuring, {"1.0": [(7, status())], "2.0": [None, (8, None), (8, status())]})
    outcome = switch(measuring, service).to("2.0")
    assert (outcome.release, outcome.changed, outcome.lacked) == ("2.0", True, None)
    assert measuring.seen() == {
        "current": "2.0",
        "previous": "1.0",
        "config": "new",
        "authority": "new",
        "unit": "new unit",
    }
    assert not measuring.place.journal.exists()
    assert service.starts == ["2.0"]


@pytest.mark.parametrize(
    ("says", "lacked"),
    [
        ([None], "started"),
        ([(8, None)], "does not answer"),
        ([(8, status(paths="a"))], "path b was up"),
        ([(8, status(usable="b"))], "modem of path a"),
        ([(8, status(reached=False))], "taken none since"),
        ([(8, {"paths": None, "spool": 3})], "path"),
        ([(pid, status()) for pid in range(8, 80)], "stay up"),
    ],
)
def test_a_release_that_is_not_healthy_in_time_is_taken_back(measuring, says, lacked):
    before = measuring.seen()
    service = FakeService(measuring, {"1.0": [(7, status())], "2.0": says})
    outcome = switch(measuring, service).to("2.0")
    assert lacked in outcome.lacked
    assert (outcome.release, outcome.back_lacks) == ("1.0", None)
    assert measuring.seen() == before
    assert service.starts == ["2.0", "1.0"]
    assert not measuring.place.journal.exists()


def test_a_release_that_answers_and_makes_no_records_is_taken_back(measuring):
    service = FakeService(measuring, {"1.0": [(7, status())], "2.0": [(8, status())]}, works=False)
    outcome = switch(measuring, service).to("2.0")
    assert (outcome.release, outcome.lacked) == ("1.0", "it makes no records")


def test_what_did_not_work_before_is_not_asked_of_the_new_release(measuring):
    poor = status(paths="a", usable="", reached=False)
    service = FakeService(measuring, {"1.0": [(7, poor)], "2.0": [(8, poor)]})
    assert switch(measuring, service).to("2.0").lacked is None


def test_the_same_again_changes_nothing(measuring):
    service = FakeService(measuring, {"1.0": [(7, status())], "2.0": [(8, status())]})
    switch(measuring, service).to("2.0")
    outcome = switch(measuring, service).to("2.0")
    assert (outcome.changed, outcome.lacked) == (False, None)
    assert service.starts == ["2.0"]
    service.stale = True  # a drop-in of another role, or a new token
    assert switch(measuring, service).to("2.0").changed
    assert service.starts == ["2.0", "2.0"]


def test_another_configuration_alone_is_switched_to_and_taken_back_too(measuring):
    service = FakeService(measuring, {"1.0": [(7, status())]})
    assert switch(measuring, service).to("1.0").changed
    assert measuring.seen()["config"] == "new"
    measuring.stage(authority=None)
    switch(measuring, service).to("1.0")
    assert measuring.seen()["authority"] is None, "what no longer goes with the release is gone"


def test_nothing_is_touched_when_the_release_refuses_its_configuration(measuring):
    before = measuring.seen()
    measuring.stage(config="refused")
    service = FakeService(measuring, {"1.0": [(7, status())]})
    with pytest.raises(ReleaseError, match=r"staged/etc/tandem/config\.toml:1: refused"):
        switch(measuring, service).to("2.0")
    assert (measuring.seen(), service.starts) == (before, [])


def test_the_check_sees_secrets_and_files_where_they_are_before_the_start(measuring, tmp_path):
    secret = tmp_path / "pin"
    secret.write_text("1234")
    measuring.stage(
        config='file = "/run/credentials/tandem.service/pin-a"\nfile = "/etc/tandem/ca.pem"',
        unit=f"[Service]\nLoadCredential=pin-a:{secret}\n",
    )
    measuring.place.check("2.0")
    secret.unlink()
    with pytest.raises(ReleaseError, match="does not take"):
        measuring.place.check("2.0")


def test_a_measurement_under_way_holds_it(measuring):
    before = measuring.seen()
    service = FakeService(measuring, {"1.0": [(7, status())]}, idle=False)
    with pytest.raises(ReleaseError, match="held by a measurement") as raised:
        switch(measuring, service).to("2.0")
    assert raised.value.status == 1
    assert measuring.seen() == before


def test_the_first_release_stays_even_when_it_lacks_something(kit):
    kit.install("1.0")
    kit.stage(config="new")
    outcome = switch(kit, FakeService(kit, {"1.0": [(7, None)]})).to("1.0")
    assert (outcome.release, outcome.lacked) == ("1.0", "the collector does not answer")
    assert kit.seen()["current"] == "1.0"
    assert not kit.place.journal.exists()


def test_ended_in_the_middle_all_is_as_before(measuring):
    before = measuring.seen()
    service = FakeService(measuring, {"1.0": [(7, status())], "2.0": [(8, None)]})
    pauses = []

    def interrupted(seconds):
        service.pause(seconds)
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    working = switch(measuring, service)
    working.pause = interrupted
    with pytest.raises(KeyboardInterrupt):
        working.to("2.0")
    assert measuring.seen() == before
    assert service.starts == ["2.0", "1.0"]


class PowerCutError(BaseException):
    """The power is gone."""


def test_whenever_the_power_goes_a_boot_finds_the_old_release_or_the_new(measuring, monkeypatch, tmp_path):
    """Cut before each single change of the disk, also while a boot takes back what was begun."""
    whole = tmp_path / "before"
    shutil.copytree(tmp_path / "opt", whole / "opt", symlinks=True)
    shutil.copytree(tmp_path / "root", whole / "root")
    old = measuring.seen()
    new = {**old, "current": "2.0", "previous": "1.0", "config": "new", "unit": "new unit", "authority": "new"}
    left = [0]

    def cut(act):
        def acting(*args):
            left[0] -= 1
            if left[0] < 0:
                raise PowerCutError
            return act(*args)

        return acting

    for name in ("copy", "write", "link", "remove", "remove_tree"):
        monkeypatch.setattr(place, name, cut(getattr(disk, name)))
    # Without power nothing is taken back but by the next boot.
    monkeypatch.setattr(switching.Switch, "back", lambda *_: None)
    ends = []
    for steps in range(200):
        for part in ("opt", "root"):
            shutil.rmtree(tmp_path / part)
            shutil.copytree(whole / part, tmp_path / part, symlinks=True)
        service = FakeService(measuring, {"1.0": [(7, status())], "2.0": [(8, status())]})
        left[0] = steps
        try:
            switch(measuring, service).to("2.0")
            done = True
        except PowerCutError:
            done = False
        for again in range(20):
            left[0] = again
            try:
                if measuring.place.journal.exists():
                    measuring.place.restore()
                break
            except PowerCutError:
                continue
        ends.append(measuring.seen())
        assert ends[-1] in (old, new)
        if done:
            break
    assert done
    assert ends[-1] == new
    assert ends[0] == old
    assert ends.count(old) > 10, "it was cut in the middle, too"
