"""Mobility classes by how often events came: the fit, what leaving one out says of it, and each run's window, by hand."""

import itertools
import random

import pytest

from tandem_server.analysis.mobility_classes import (
    LABELLED,
    PLAYED,
    Classifier,
    Fit,
    Judged,
    Times,
    as_json,
    fit,
    from_json,
    run_classes,
)

POLLED = (0.0, 1800.0)


def test_the_threshold_between_low_and_high_speed():
    found = fit({"low": [1.0, 2.0, 3.0], "high": [7.0, 8.0, 9.0]})
    assert found == (Classifier(("low", "high"), (5.0,)), 1.0, 6, ((3, 0), (0, 3)))
    assert [found.classifier.of(v) for v in (4.999, 5.0)] == ["low", "high"]
    one = fit({"low": [1.0], "high": [2.0]})
    assert (one.classifier.bounds, one.accuracy, one.judged) == ((1.5,), None, 0)
    assert fit({"low": [1.0], "high": [5.0, 6.0]})[1:] == (1.0, 2, ((0, 0), (0, 2)))
    assert fit({"low": [1.0], "high": [], "moving": [3.0]}) is None
    # 8.5 lies among the other class: it is judged wrong when it is left out.
    wrong = fit({"low": [1.0, 2.0, 3.0, 8.5], "high": [7.0, 8.0, 9.0]})
    assert (wrong.accuracy, wrong.confusion) == (pytest.approx(6 / 7), ((3, 1), (0, 3)))


def test_no_other_bounds_have_fewer_errors():
    drawn = random.Random(3)
    for _ in range(60):
        names = ("static", "low", "high")[: drawn.choice((2, 3))]
        samples = {name: [float(drawn.randint(0, 9)) for _ in range(drawn.randint(1, 5))] for name in names}
        places = [v / 2 - 0.25 for v in range(23)]

        def errors(c, samples=samples):
            return sum(c.of(v) != name for name, values in samples.items() for v in values)

        every = itertools.combinations_with_replacement(places, len(names) - 1)
        assert errors(fit(samples).classifier) == min(errors(Classifier(names, bounds)) for bounds in every)


def test_a_fit_goes_through_a_file():
    found = fit({"low": [1.0, 2.0, 3.0, 8.5], "high": [7.0, 8.0, 9.0]})
    assert from_json(as_json(found, "x")) == (found, "x")
    for change in (
        {"format": "other"},
        {"bounds_per_five_minutes": []},
        {"classes": ["low", "fast"]},
        {"judged": None},
    ):
        with pytest.raises(ValueError, match="no fit of mobility classes"):
            from_json({**as_json(found, "x"), **change})
    with pytest.raises(ValueError, match="no fit"):
        from_json([])


def walk_and_drive():
    """Five minutes each by turns: on foot an event a minute, in a car five."""
    spans = [(300.0 * n, 300.0 * (n + 1), ("low", "high")[n % 2]) for n in range(6)]
    events = [a + k * (60 if name == "low" else 12) for a, b, name in spans for k in range(5 if name == "low" else 25)]
    return spans, events


def test_a_campaign_with_labelled_runs_is_fitted_on_them():
    spans, events = walk_and_drive()
    runs = {f"r{n}": span for n, span in enumerate(spans)}
    found = run_classes(Times(events, POLLED, spans, [], runs))
    assert found.fitted_on == f"6 windows of about 300 s of {LABELLED}"
    assert (found.fit.classifier.bounds, found.fit.accuracy) == ((15.0,), 1.0)
    assert found.runs == {f"r{n}": (Judged(5.0, "low"), Judged(25.0, "high"))[n % 2] for n in range(6)}
    assert found.as_json()["confusion"] == [[3, 0], [0, 3]]
    assert "right for 100 % of 6" in found.accuracy_text()


def test_a_runs_window_is_five_minutes_about_it_but_not_into_runs_of_another_label():
    runs = {"walk": (280.0, 290.0, "low"), "drive": (310.0, 320.0, "high"), "free": (600.0, 610.0, None)}
    given = Fit(Classifier(("low", "high"), (10.0,)), None, 0, ((0, 0), (0, 0))), "given: elsewhere"
    found = run_classes(Times([100.0, 200.0, 295.0, 312.0, 700.0], POLLED, [], [], runs), given)
    # Walk: 135 to 310, of 200 and 295; drive: 290 to 465, of 295 and 312; free: 455 to 755, of 700.
    rates = [found.runs[run].per_five_minutes for run in runs]
    assert rates == [pytest.approx(2 * 300 / 175), pytest.approx(2 * 300 / 175), pytest.approx(1.0)]
    assert found.fitted_on == "given: elsewhere"


def test_without_labels_what_the_bench_played_and_without_that_it_says_so():
    spans, events = walk_and_drive()
    assert run_classes(Times(events, POLLED, [], spans, {})).fitted_on.endswith(PLAYED)
    assert run_classes(Times(events, POLLED, spans[:1], spans, {})).fitted_on.endswith(PLAYED)
    # One span of each class: windows of a minute, five each.
    short = run_classes(Times(events, POLLED, spans[:2], spans, {}))
    assert (short.fitted_on, short.fit.judged) == (f"10 windows of about 60 s of {LABELLED}", 10)
    bare = run_classes(Times(events, POLLED, [], [], {"r": (0.0, 10.0, None)}))
    assert (bare.fit, bare.runs["r"].mobility) == (None, None)
    assert "no fit was given (report --mobility FILE)" in bare.accuracy_text()
    assert run_classes(Times([], None, spans, [], {"r": (0.0, 10.0, None)})).runs["r"] == Judged(None, None)
