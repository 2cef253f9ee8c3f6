"""A campaign file: what is read of it, and that every mistake is one line with file, line and hint."""

import random
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem import campaigns
from tandem.schema.campaign import Campaign, CampaignError, Draw, arms, draw, items, order
from tandem.schema.campaign_reader import forms, parse

GOOD = """\
format = "tandem-campaign-file/1"
name = "kind-of"
title = "A campaign"
roles = ["wifi", "cellular"]
seed = 7
quiet_s = 3

[requires]
scheduler = "minsrtt"
controllers = ["lia"]
substitutes = { lia = "reno" }

[budget]
path_bytes = 1_000_000
reset_day = 31
role = { cellular = 500 }

[base.wifi]
rtt_ms = 20

[[step]]
name = "one"
experiment = "download"
repetitions = 4
[step.parameters]
bytes = [1000, { log_uniform = [100, 5000] }]
pairing = "sequential"
[step.shape.cellular]
rate_bit_per_s = [1e6, 2e6]
[step.trigger]
on = "window"
between = "23:30-01:15"

[[step]]
name = "two"
experiment = "other"
arms = [{ kind = "mptcp" }, { kind = "tcp", path = "wifi" }]

[form.short]
repetitions = 1
[form.short.step.one]
trigger = { on = "always" }
without = ["pairing"]
[form.short.step.one.parameters]
bytes = 5
[form.short.step.two]
skip = true
"""
WINDOW = 'on = "window"\nbetween = "23:30-01:15"'


def line_of(text: str, part: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if part in line)


def wrong(text: str, *, form: str = "paper") -> str:
    with pytest.raises(CampaignError) as caught:
        parse(text, "c.toml", form=form)
    return str(caught.value)


def test_everything_is_read():
    campaign = parse(GOOD, "c.toml")
    one, two = campaign.steps
    assert (campaign.name, campaign.roles, campaign.seed, campaign.quiet_s) == ("kind-of", ("wifi", "cellular"), 7, 3.0)
    assert one.parameters["bytes"] == (1000, Draw("log_uniform", 100, 5000))
    assert one.shape == {"cellular": {"rate_bit_per_s": (1e6, 2e6)}}
    assert (one.arm_count, one.run_count) == (4, 16)
    assert (one.trigger.on, one.trigger.start, one.trigger.end) == ("window", 23 * 60 + 30, 75)
    assert two.arms == ({"kind": "mptcp"}, {"kind": "tcp", "path": "wifi"})
    assert campaign.base == {"wifi": {"rtt_ms": 20.0}}
    assert [campaign.budget.of_role(role) for role in campaign.roles] == [1_000_000, 500]
    assert campaign.requires.substitutes == {"lia": "reno"}
    for told, kinds in (('"handover"', ("handover",)), ('["handover", "signal_drop"]', ("handover", "signal_drop"))):
        text = GOOD.replace(WINDOW, f'on = "event"\nevent = {told}')
        assert parse(text, "c.toml").steps[0].trigger.event == kinds


def test_the_short_form_lies_over_the_long_one():
    campaign = parse(GOOD, "c.toml", form="short")
    (one,) = campaign.steps
    assert one.repetitions == 1
    assert dict(one.parameters) == {"bytes": (5,)}
    assert one.trigger.on == "always"
    assert campaign.where("step", "one", "parameters", "bytes") == f"c.toml:{line_of(GOOD, 'bytes = 5')}"
    assert campaign.where("step", "one", "shape", "cellular") == f"c.toml:{line_of(GOOD, '[step.shape.cellular]')}"


MISTAKES = [
    ("seed = 7", "sead = 7", "unknown key 'sead' in a campaign", "write seed"),
    ("rtt_ms = 20", 'rtt_ms = "20 ms"', "'20 ms' is not a number", "ms, 0 to 10000"),
    ("rate_bit_per_s = [1e6, 2e6]", "rate_mbit_per_s = 1", "unknown key", "write rate_bit_per_s"),
    ("rate_bit_per_s = [1e6, 2e6]", "rate_bit_per_s = [8, 16]", "8 is below 10000", "bit/s"),
    ("rate_bit_per_s = [1e6, 2e6]", "rate_bit_per_s = []", "an empty list has no arm", "bit/s"),
    ("repetitions = 4", "repetitions = 300000", "more than 1000000 runs", "fewer values"),
    ('pairing = "sequential"', "simultaneous_syn = true", "existed only as a patch", "take 'simultaneous_syn' out"),
    ('pairing = "sequential"', 'primary = "lte"', "'lte' is no role", "random, or one of wifi, cellular"),
    ('pairing = "sequential"', "when = 2026-01-01", "is no value of a parameter", "a number, text"),
    ("log_uniform = [100, 5000]", "log_uniform = [0, 5000]", "log_uniform from 0 to 5000", "above 0"),
    ("log_uniform = [100, 5000]", "log_uniform = [5000, 100]", "log_uniform from 5000 to 100", "the smaller first"),
    ('on = "window"', 'on = "always"', "takes no 'between'", "take it out"),
    ('on = "window"', 'on = "periodic"', "has no 'every_s'", "add it: seconds"),
    ('"23:30-01:15"', '"23:30-24:15"', "is no span of the day", "local time"),
    ("cellular = 500", "lte = 500", "unknown key 'lte' in [budget.role]", "known are wifi, cellular"),
    ("[step.shape.cellular]", "[step.shape.lte]", "unknown key 'lte' in [step.shape]", "known are wifi"),
    ('lia = "reno" }', 'olia = "reno" }', "no controller for one that is required", "lia"),
    ('{ kind = "mptcp" }', "{ kind = 5, path = 6 }", "path: 6 is no role", "random"),
    ('["wifi", "cellular"]', '["wifi", "wifi"]', "a text occurs twice", "roles"),
    ('["wifi", "cellular"]', "[]", "roles: none", "one to 8"),
    ('format = "tandem-campaign-file/1"', 'format = "tandem-campaign-file/9"', "is none of tandem-campaign-file/1", "write format"),
    ("[form.short.step.two]", "[form.short.step.tow]", "there is no step 'tow'", "known are one, two"),
    ('without = ["pairing"]', 'without = ["size"]', "the step has no parameter 'size'", "take it out"),
    ("[form.short]", "[form.paper]\n[form.short]", "form 'paper' is the file as it stands", "another name"),
    ("[form.short]", "[form.Pilot]\n[form.short]", "form 'Pilot' is no name", "use lower-case letters"),
    (WINDOW, 'on = "event"\nevent = "tea"', "'tea' is none of", "a kind of event"),
    (WINDOW, 'on = "event"\nevent = 3', "is no list of texts", "a kind of event"),
]  # fmt: skip


def test_a_mistake_is_one_line_that_names_its_place():
    for old, new, what, hint in MISTAKES:
        text = GOOD.replace(old, new)
        message = wrong(text, form="short" if GOOD.index(old) >= GOOD.index("[form.short]") else "paper")
        assert what in message
        assert hint in message.partition("; hint: ")[2]
        found = int(re.match(r"c\.toml:(\d+): ", message)[1])
        changed = line_of(text, new.splitlines()[0])
        if old == WINDOW:
            assert found == changed + 1
        elif "on = " in old or "two" in old or "arms" in new or "simultaneous" in new:
            assert abs(found - changed) <= 1  # the key beside, or the table that holds it
        else:
            assert found == changed


def test_what_is_missing_or_there_twice_or_no_toml_is_named():
    for left_out, words in (
        ('name = "kind-of"\n', "has no 'name'"),
        ('roles = ["wifi", "cellular"]\n', "has no 'roles'"),
        (GOOD[GOOD.index("[[step]]") :], "the campaign has no steps"),
        ('experiment = "download"\n', "[[step]] has no 'experiment'"),
    ):
        assert words in wrong(GOOD.replace(left_out, ""))
    number = line_of(GOOD, 'name = "two"')
    twice = wrong(GOOD.replace('name = "two"', 'name = "one"'))
    assert twice.startswith(f"c.toml:{number}: step 'one' is there already; hint: ")
    assert re.match(r"c\.toml:3: no TOML: .*; hint: ", wrong('format = "x"\nname = "y"\nseed = = 2\n'))
    assert "more than 64 bits" in wrong(GOOD.replace("seed = 7", f"seed = {2**70}"))
    assert wrong(GOOD.replace("seed = 7", f"seed = {'9' * 5000}")).startswith("c.toml:")


def held(text: str) -> None:
    """Either a campaign, or one line."""
    for form in ("paper", "short", "pilot"):
        try:
            found: Campaign | CampaignError = parse(text, "c.toml", form=form)
        except CampaignError as error:
            found = error
        assert isinstance(found, Campaign) or re.fullmatch(r"c\.toml:\d+: [^\n]+; hint: [^\n]+", str(found))


NUMBERS = ["0", "-1", "1e400", "nan", "9" * 30, "0x" + "f" * 60]
OTHERS = ["true", '""', '"x"', '"\\u0000"', "2026-01-01", "1979-05-27T07:32:00Z", "{}", "{ a = {} }"]
LISTS = ["[]", "[[]]", "[1, [2]]", '["wifi"]', "[1, 1]", "[{}, {}]", "{ log_uniform = [1, 2] }", "{ log_uniform = 1 }"]
VALUES = st.sampled_from([*NUMBERS, *OTHERS, *LISTS])
LONG = [GOOD, *(campaigns.text(name) for name in campaigns.names())]


@given(st.sampled_from(LONG), st.data())
def test_a_value_in_the_place_of_another_and_lines_lost_or_moved_are_a_campaign_or_one_line(text, data):
    lines = text.splitlines()
    number = data.draw(st.sampled_from([n for n, line in enumerate(lines) if re.match(r"\w+ = ", line)]))
    other = [*lines]
    other[number] = f"{lines[number].partition(' = ')[0]} = {data.draw(VALUES)}"
    held("\n".join(other))
    one, two = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    lines[one], lines[two] = lines[two], lines[one]
    if data.draw(st.booleans()):
        del lines[one]
    held("\n".join(lines))


@given(st.text(max_size=200))
def test_any_text_is_a_campaign_or_one_line(text):
    held(text)


@given(st.sampled_from(LONG), st.data())
def test_an_unknown_key_is_never_taken(text, data):
    lines = text.splitlines()
    tables = [n for n, line in enumerate(lines) if re.match(r"\[(?!.*(parameters|substitutes))", line)]
    number = data.draw(st.sampled_from(tables))
    lines.insert(number + 1, "surely_unknown = 1")
    with pytest.raises(CampaignError) as caught:
        forms("\n".join(lines), "c.toml")
    assert str(caught.value).startswith(f"c.toml:{number + 2}: unknown key 'surely_unknown'")


SET = GOOD.replace("[step.trigger]", '[step.sysctl]\n"net.ipv4.tcp_no_metrics_save" = 0\nX\n[step.trigger]', 1)


def test_a_step_sets_a_short_list_of_sysctls_and_no_other_nor_another_value():
    told = parse(SET.replace("X", '"net.ipv4.tcp_rmem" = "4096 131072 6291456"'), "c.toml").steps[0]
    assert told.sysctl == {"net.ipv4.tcp_no_metrics_save": 0, "net.ipv4.tcp_rmem": "4096 131072 6291456"}
    buffers = ("4096", "1 2 3", "9000 8000 9999", "4096 8192 99999999999", "4096 8192 9000;x")
    rows = ['"net.ipv4.ip_forward" = 1', '"net.ipv4.tcp_sack" = 2', '"net.ipv4.tcp_sack" = "1"', '"kernel.panic" = 1']
    for bad in (*rows, *(f'"net.ipv4.tcp_rmem" = "{buffer}"' for buffer in buffers)):
        assert re.match(r"c\.toml:\d+: .*; hint: ", wrong(SET.replace("X", bad))), bad


def test_more_runs_than_a_probe_can_hold():
    values = str(list(range(1, 151)))
    many = GOOD.replace("bytes = [1000, { log_uniform = [100, 5000] }]", f"bytes = {values}\nseconds = {values}")
    many = many.replace("repetitions = 4", "repetitions = 1")
    assert "45000 arms, more than 20000; hint: fewer values" in wrong(many)
    step = '[[step]]\nname = "s{}"\nexperiment = "download"\nrepetitions = 400000\n'
    text = GOOD.partition("[[step]]")[0] + "".join(step.format(n) for n in range(3))
    message = wrong(text)
    assert "with step s2 the campaign has more than 1000000 runs" in message
    assert message.startswith("c.toml:" + str(line_of(text, 'name = "s2"') - 1))


FILE = """\
format = "tandem-campaign-file/1"
name = "x"
title = "t"
seed = {seed}
roles = ["a", "b"]
[base.a]
rtt_ms = 20
[[step]]
name = "s"
experiment = "e"
repetitions = {repetitions}
order = "{order}"
arms = [{{ kind = "mptcp" }}, {{ kind = "tcp" }}]
[step.parameters]
bytes = [10, {{ log_uniform = [100, 1000] }}]
[step.shape.b]
down_loss_percent = [0, 1, 2]
"""


def campaign(seed=1, repetitions=5, order="blocks"):
    return parse(FILE.format(seed=seed, repetitions=repetitions, order=order), "f")


def test_arms_are_all_combinations_and_what_is_drawn_depends_on_repetition_and_arm_alone():
    made = campaign()
    found = arms(made, made.steps[0])
    assert len(found) == made.steps[0].arm_count == 12
    assert found[0].parameters == {"bytes": 10, "kind": "mptcp"}
    assert found[0].shape == {"a": {"rtt_ms": 20.0}, "b": {"down_loss_percent": 0.0}}
    assert len({(a.parameters["kind"], str(a.parameters["bytes"]), str(a.shape)) for a in found}) == 12
    made = campaign()
    shuffled = campaign(order="shuffled")
    drawn = {(i.repetition, i.arm): (i.parameters["bytes"], i.seed) for i in items(made, made.steps[0])}
    assert drawn == {(i.repetition, i.arm): (i.parameters["bytes"], i.seed) for i in items(shuffled, shuffled.steps[0])}
    sizes = [size for size, _ in drawn.values() if size != 10]
    assert all(isinstance(s, int) and 100 <= s <= 1000 for s in sizes)
    assert len(set(sizes)) > 10


@given(st.integers(0, 2**31), st.sampled_from(["blocks", "shuffled", "listed"]), st.integers(1, 6))
def test_every_arm_comes_as_often_as_asked_and_the_seed_says_when(seed, kind, repetitions):
    made = campaign(seed, repetitions, kind)
    step = made.steps[0]
    sequence = order(made, step)
    assert sequence == order(campaign(seed, repetitions, kind), step)
    assert Counter(sequence) == {(r, a): 1 for r in range(repetitions) for a in range(12)}
    if kind != "shuffled":
        assert [r for r, _ in sequence] == [r for r in range(repetitions) for _ in range(12)]
    assert (sequence == order(campaign(seed + 1, repetitions, kind), step)) == (kind == "listed")
    assert kind != "listed" or sequence[:3] == [(0, 0), (0, 1), (0, 2)]


@given(st.sampled_from(["uniform", "log_uniform"]), st.integers(1, 10**6), st.integers(1, 10**6), st.integers())
def test_a_draw_stays_within_its_bounds(law, low, width, seed):
    value = draw(Draw(law, low, low + width), random.Random(seed))
    assert isinstance(value, int)
    assert low <= value <= low + width


def test_log_uniform_has_as_many_small_as_large():
    chance = random.Random(1)
    values = [draw(Draw("log_uniform", 100, 1_000_000), chance) for _ in range(4000)]
    below = sum(v < 10_000 for v in values) / len(values)
    assert below == pytest.approx(0.5, abs=0.03)
