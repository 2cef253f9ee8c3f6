"""Hours that got lines late stay on the list until they were made again as they were noted last."""

from tandem_server.registry import Registry, Ripening, Settled
from tandem_server.registry.late import CONSUMERS, NOTED_AGAIN_S

HOUR = 1_700_000_000 // 3600 * 3600


def keys(found):
    return [(one.probe, one.measurement, one.hour_utc_s) for one in found]


def test_each_consumer_has_its_own_list_of_what_it_is_made_of(registry):
    registry.late.note({("p1", "radio", HOUR), ("p1", "usage", HOUR), ("p1", "position", HOUR)}, 1)
    assert keys(registry.late.pending("rollups")) == [("p1", "radio", HOUR), ("p1", "usage", HOUR)]
    assert keys(registry.late.pending("coverage")) == [("p1", "position", HOUR), ("p1", "radio", HOUR)]
    registry.late.done("rollups", registry.late.pending("rollups"))
    assert registry.late.pending("rollups") == []
    assert len(registry.late.pending("coverage")) == 2


def test_what_is_noted_again_while_it_is_made_stays(registry):
    registry.late.note({("p1", "radio", HOUR), ("p2", "radio", HOUR)}, 1)
    under_way = registry.late.pending("rollups")
    registry.late.note({("p1", "radio", HOUR)}, 2)
    registry.late.done("rollups", under_way)
    assert keys(registry.late.pending("rollups")) == [("p1", "radio", HOUR)]


def test_one_taken_off_and_noted_anew_is_another(registry):
    registry.late.note({("p1", "radio", HOUR)}, 1)
    old = registry.late.pending("rollups")
    registry.late.done("rollups", old)
    registry.late.note({("p1", "radio", HOUR)}, 1)
    registry.late.done("rollups", old)  # by one that lost its lease and did not know
    assert len(registry.late.pending("rollups")) == 1


def test_it_survives_a_restart_newest_hours_first(tmp_path):
    with Registry(tmp_path / "registry.sqlite") as opened:
        opened.late.note({("p1", "radio", HOUR - 3600 * n) for n in range(5)}, 7)
        opened.late.settle("radio", Settled("abc", HOUR))
    with Registry(tmp_path / "registry.sqlite") as opened:
        assert [one.hour_utc_s for one in opened.late.pending("rollups")] == [HOUR - 3600 * n for n in range(5)]
        assert opened.late.waiting("rollups") == (5, 7)
        assert opened.late.settled() == {"radio": Settled("abc", HOUR)}


def test_a_note_is_ripe_when_it_has_stood_for_longer_than_it_may_be_left_unrepeated(registry):
    ripening = Ripening()
    registry.late.note({("p1", "radio", HOUR)}, 1)
    assert ripening.ripe(registry.late.pending("rollups"), 100.0) == []
    registry.late.note({("p1", "radio", HOUR)}, 1)  # noted again: it begins anew
    assert ripening.ripe(registry.late.pending("rollups"), 129.0) == []
    assert ripening.ripe(registry.late.pending("rollups"), 131.0) == []
    assert keys(ripening.ripe(registry.late.pending("rollups"), 129.0 + 30.0)) == [("p1", "radio", HOUR)]
    assert NOTED_AGAIN_S < 30.0


def test_an_empty_note_and_an_unknown_measurement_write_nothing(registry):
    registry.late.note(set(), 1)
    registry.late.note({("p1", "phase", HOUR)}, 1)
    assert all(registry.late.waiting(consumer) == (0, None) for consumer in CONSUMERS)
