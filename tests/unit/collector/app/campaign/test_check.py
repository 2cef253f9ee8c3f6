"""A campaign against what is installed, against kernels, and as it is asked of a collector."""

import re
import types
from pathlib import Path

import hypothesis
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from road import campaign, step

from tandem import campaigns
from tandem.app.campaign.check import admitted, fitted
from tandem.app.campaign.estimate import estimate, plan_fit
from tandem.app.campaign.progress import Origin
from tandem.app.campaign.request import bound, request_of, settings, settled, shaped, used_instead
from tandem.app.campaign.scheduler import Moment
from tandem.app.config import parse
from tandem.app.runs.registry import Registry
from tandem.app.runs.request import parameters_of, parse_request, plan
from tandem.campaigns import load
from tandem.experiment import names
from tandem.schema.campaign import CampaignError, items
from tandem.schema.campaign_queue import Pushed

CONFIG = """\
[probe]
name = "p"
[server]
gateway = "https://s:1"
control = "https://s:2"
measurement = "http://s:3"
token_file = "token"
[[path]]
name = "one"
interface = "eth0"
[[path]]
name = "two"
interface = "eth1"
"""


@pytest.fixture(scope="module")
def registry():
    return Registry(None)


def refused(registry, steps, top=""):
    with pytest.raises(CampaignError) as caught:
        fitted(campaign(steps, top), registry)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        *((name, form) for name in campaigns.names() for form in ("paper", "short", "pilot")),
        *((name, "emulated") for name in ("adarsh-controlled", "chen-sizes", "cordero-bandwidth", "cordero-delay")),
    ],
)
def test_the_papers_campaigns_fit_what_is_installed_and_can_be_asked_for(name, form, registry, tmp_path):
    made = load(name, form=form)
    missing = {s.experiment for s in made.steps if not s.optional} - set(names())
    if missing:
        with pytest.raises(CampaignError, match="is not installed"):
            fitted(made, registry)
        pytest.skip(f"{', '.join(missing)}: not installed")
    made, _ = fitted(made, registry)
    third = '[[path]]\nname = "three"\ninterface = "wlan0"\n'
    config = parse(CONFIG + third, tmp_path / "config.toml")
    paths = bound(made.roles, ["one", "two", "three"], {})
    for each in made.steps:
        seen = set()
        for one in items(made, each):
            if one.arm in seen:
                continue
            seen.add(one.arm)
            request = request_of(each, one, paths, {})
            assert parse_request(config, registry, each.experiment, request, "campaign").seed == one.seed
        assert len(seen) == each.arm_count


@pytest.mark.parametrize("name", campaigns.names())
def test_a_short_form_is_short_and_a_pilot_fits_a_plan_of_10_gb(name):
    pilot = load(name, form="pilot")
    long, found, short = estimate(load(name)), estimate(pilot), estimate(load(name, form="short"))
    assert short.runs <= 12
    assert short.seconds < 180
    assert max(short.bytes_by_role.values()) < 100_000_000
    assert short.days is not None
    # Comparisons of ours: a block is the short form, 30 are the campaign. MA2 made 132 experiments of two kinds in all.
    times = 30 if name.endswith("-ab") else 66 if name == "cordero-remote" else 101
    assert long.runs >= times * short.runs or name == "adarsh-survey"
    fit = plan_fit(found, 10_000_000_000)
    assert fit.reason is None
    assert found.days is not None
    assert found.days < 14
    assert all(one.day_share <= 1 for one in fit.by_role.values())
    assert 30 <= found.runs < long.runs or name == "adarsh-survey"
    assert (pilot.budget.day_bytes or 0) <= fit.day_bytes
    assert all(step.trigger.on != "hand" for step in pilot.steps), "it ends by itself"


REFUSED = [
    ('seconds = 5\nsise = 3', "download has no parameter 'sise'", "known are"),
    ("bytes = 0", "0 B is below 1 B", "1 to 1e+12 B"),
    ('bytes = "1 MB"', "'1 MB' is not a whole number", "1 to 1e+12 B"),
    ("bytes = { log_uniform = [1, 10000000000000] }", "above 1e+12", "1 to 1e+12 B"),
    ("bytes = { uniform = [1.5, 3] }", "1.5 is not a whole number", "1 to 1e+12 B"),
    ('bytes = 1\nseconds = 2', "either 'bytes' or 'seconds'", "give one of them"),
    ('bytes = 1\nkind = "tcp"', "needs its path", "add path"),
    ('bytes = 1\npath = "a"', "a pair takes all of its paths", "take it out, or add kind"),
    ('bytes = 1\nkind = "tcp"\npath = "a"\npairing = "sequential"', "takes no 'kind'", "take kind or pairing out"),
    ('bytes = 1\nkind = "udp"\npath = "a"', "'udp' is not one of mptcp, tcp", "one of mptcp, tcp"),
    ('bytes = 1\nkind = "tcp"\npath = "a"\nsubflows = 2', "subflows is of MPTCP", "take it out"),
    ("bytes = 1\nsubflows = [2, 3]", "3 is not one of 1, 2, 4", "one of 1, 2, 4"),
    ('bytes = 1\nserver = "x"', "has no parameter 'server'", "known are"),
    ('bytes = 1\ncapture = "server"', "capture: 'server'", "one of probe, both"),
    ('bytes = 1\nsteering = "left"', "steering: 'left'", "one of off, drop, handover, learned"),
    ('bytes = 1\nsteering = "drop"\npairing = "simultaneous"', "have the paths to themselves", "take it out"),
    ('bytes = 1\nsteering = "drop"\nkind = "tcp"\npath = "random"', "have the paths to themselves", "take it out"),
]  # fmt: skip


def test_parameters_are_checked_as_the_experiment_will(registry):
    wrong = []
    for parameters, what, hint in REFUSED:
        message = refused(registry, step(more=f"[step.parameters]\n{parameters}"))
        placed = re.match(r"c\.toml:(9|1[0-9]): step s: ", message)
        if not placed or what not in message or hint not in message.partition("; hint: ")[2]:
            wrong.append((parameters, message))
    assert wrong == []


def test_an_experiment_that_is_not_installed(registry):
    steps = step("s", 1, "[step.parameters]\nbytes = 1") + step("t").replace("download", "telepathy")
    message = refused(registry, steps)
    assert "step t: experiment 'telepathy' is not installed" in message
    made, left_out = fitted(campaign(steps.replace('"telepathy"', '"telepathy"\noptional = true')), registry)
    assert [s.name for s in made.steps] == ["s"]
    assert "step t is left out" in left_out[0]


@pytest.mark.parametrize("own", ['"download"\nkind = "mptcp"\nseconds = 5', '"dash"\nkind = "mptcp"\npath = "random"'])
def test_steering_and_captures_are_asked_of_any_experiment(own, registry):
    config = parse(CONFIG, Path("/x/config.toml"))
    experiment, _, parameters = own.partition("\n")
    text = step(more=f'[step.parameters]\nsteering = ["off", "learned"]\ncapture = "both"\n{parameters}')
    made, _ = fitted(campaign(text.replace('"download"', experiment)), registry)
    roles = bound(made.roles, ["one", "two"], {})
    requests = [request_of(made.steps[0], one, roles, {}) for one in items(made, made.steps[0])]
    wanted = [parse_request(config, registry, experiment.strip('"'), request, "campaign") for request in requests]
    assert {(one.steering, one.capture) for one in wanted} == {("off", "both"), ("learned", "both")}
    assert not any({"steering", "capture"} & one.parameters.keys() for one in wanted)
    with pytest.raises(ValueError, match="steering is of MPTCP"):
        parse_request(config, registry, "dash", {"parameters": {"kind": "tcp"}, "steering": "drop"}, "request")


def test_a_pair_takes_the_paths_of_its_roles_and_no_others(registry):
    third = '\n[[path]]\nname = "three"\ninterface = "eth2"\n'
    config = parse(CONFIG + third, Path("/x/config.toml"))
    made = campaign(
        step(more='[step.parameters]\npairing = "simultaneous"\nprimary = "random"\nbytes = 5\nsubflows = [2, 4]')
    )
    roles = bound(made.roles, ["one", "two", "three"], {made.roles[0]: "three"})
    asked = set()
    for one in items(made, made.steps[0]):
        wanted = parse_request(config, registry, "download", request_of(made.steps[0], one, roles, {}), "campaign")
        planned = plan(config, wanted, 0)
        assert wanted.paths == ("three", "one")
        assert {path for run in planned.runs for path in run.paths} == {"three", "one"}
        interfaces = {"one": "eth0", "two": "eth1", "three": "eth2"}
        for run in planned.runs:
            given = parameters_of(config, planned, run, interfaces, {})
            assert {p["name"] for p in given["paths"]} == {"three", "one"}
            assert ("subflows" in given) == (run.kind == "mptcp")
            asked.add(given.get("subflows"))
    assert asked == {None, 2, 4}


def test_roles_are_played_by_paths():
    assert bound(("wifi", "lte"), ["a", "b", "w"], {"wifi": "w"}) == {"wifi": "w", "lte": "a"}
    for told in ({"wired": "a"}, {"wifi": "x"}, {"wifi": "a", "lte": "a"}):
        with pytest.raises(CampaignError, match="hint"):
            bound(("wifi", "lte"), ["a", "b"], told)
    with pytest.raises(CampaignError, match="has 2 paths, this probe has 1"):
        bound(("wifi", "lte"), ["a"], {})


def test_a_request_names_the_probes_paths_and_halves_the_round_trip():
    made = campaign(
        step(more='[step.parameters]\nkind = "mptcp"\npath = ["b", "random"]\nbytes = 5\n[step.shape.b]\nrtt_ms = 50')
    )
    requests, again = (
        [request_of(made.steps[0], one, {"a": "one", "b": "two"}, {}) for one in items(made, made.steps[0])]
        for _ in range(2)
    )
    assert requests == again
    assert {r["path"] for r in requests} == {"one", "two"}
    assert all(r["shape"] == {"two": {"down_delay_ms": 25.0, "up_delay_ms": 25.0}} for r in requests)
    both = {"down_bit_per_s": 1e6, "up_bit_per_s": 1e6}
    assert shaped({"rate_bit_per_s": 1e6, "down_loss_percent": 0.0}) == {**both, "down_loss_percent": 0.0}
    assert shaped({"rtt_ms": 0.0, "queue_ms": 100.0}) == {}


# --- kernels ---------------------------------------------------------------------------------------------------------------

NEEDY = '[requires]\nscheduler = "minsrtt"\ncontrollers = ["lia", "olia"]\nsubstitutes = { lia = "reno" }'
COUPLED = step(more='[step.parameters]\nbytes = 1\ncongestion_control = ["lia", "olia", "cubic"]')


def has(**there):
    return lambda wanted: {name: there.get(name) for name in wanted}


def kernel(scheduler="minsrtt", controllers=None, *, more=(), way=None):
    """A kernel as ``settled`` asks it; ``more``: schedulers that could be had."""
    return types.SimpleNamespace(
        protocol=0 if scheduler == "minsrtt" else 1,
        scheduler=lambda: scheduler,
        schedulers=lambda: {name: name for name in (scheduler, *more)},
        scheduler_sysctl="net.mptcp.it",
        controllers=lambda: None if controllers is None else frozenset(controllers),
        brings={} if way is None else dict.fromkeys(("lia", "olia"), way),
    )


def test_what_is_missing_is_refused_or_replaced_and_told():
    made = campaign(COUPLED, NEEDY)
    lack = {"kernel": kernel("stock"), "there": has(lia=False, olia=False)}
    with pytest.raises(CampaignError) as caught:
        settled(made, allow=False, **lack)
    missing = ("scheduler minsrtt (this kernel has stock", "controller lia (the server's", "controller olia")
    for words in (*missing, "allow_substitutes"):
        assert words in str(caught.value)
    instead = settled(made, allow=True, **lack)
    assert instead == {
        "scheduler": {"asked": "minsrtt", "used": "stock"},
        "lia": {"asked": "lia", "used": "reno"},
        "olia": {"asked": "olia", "used": None},
    }
    asked = {}
    for one in items(made, made.steps[0]):
        request = request_of(made.steps[0], one, {"a": "one", "b": "two"}, instead)
        used = request.get("parameters", {}).get("congestion_control")
        asked[one.parameters["congestion_control"]] = (used, used_instead(one, instead).get("congestion_control"))
    assert asked == {"lia": ("reno", instead["lia"]), "olia": (None, instead["olia"]), "cubic": ("cubic", None)}
    assert settled(campaign(COUPLED, "allow_substitutes = true\n" + NEEDY), allow=False, **lack) == instead


def test_who_sends_needs_the_controller_and_its_scheduler_counts():
    text = step(more='[step.parameters]\nmode = "oneway"\ncongestion_control = "lia"').replace("download", "bandwidth")
    with pytest.raises(CampaignError, match="lia \\(the probe's kernel"):
        settled(campaign(text, NEEDY), allow=False, kernel=kernel(controllers=["reno"]), there=has(lia=True))
    made = campaign(COUPLED, NEEDY)
    asked = {"kernel": kernel(), "there": has()}
    assert settled(made, allow=False, sends=lambda: "minsrtt", **asked) == {}
    with pytest.raises(CampaignError, match="the server's kernel, which sends, has roundrobin"):
        settled(made, allow=False, sends=lambda: "roundrobin", **asked)
    instead = settled(made, allow=True, sends=lambda: "roundrobin", **asked)
    assert instead == {"scheduler": {"asked": "minsrtt", "used": "roundrobin"}}


def test_a_scheduler_that_can_be_had_is_set_for_the_run_and_nothing_is_substituted():
    made, here = campaign(COUPLED, NEEDY), kernel("roundrobin", more=["minsrtt"])
    assert settled(made, allow=False, kernel=here, there=has()) == {}
    assert settings(made, {}, here) == {"net.mptcp.it": "minsrtt"}
    first = next(iter(items(made, made.steps[0])))
    request = request_of(made.steps[0], first, {"a": "one", "b": "two"}, {}, settings(made, {}, here))
    assert request["sysctl"] == {"net.mptcp.it": "minsrtt"}
    assert settings(made, {}, kernel("minsrtt")) == {}, "it is so already"
    assert settings(made, {"scheduler": {"asked": "minsrtt", "used": "stock"}}, here) == {}
    assert settings(campaign(COUPLED), {}, here) == {}
    with pytest.raises(ValueError, match="no more"):
        settings(made, {}, kernel("roundrobin"))


NOW = Moment("boot", 1.0)
HEAD = 'format = "tandem-campaign-file/1"\nname = "own"\ntitle = "t"\nroles = ["a", "b"]\n[[step]]\nname = "s"\n'


@pytest.fixture
def admit(registry, tmp_path):
    config = parse(CONFIG, tmp_path / "config.toml")

    def admit(text, name="own", missing=lambda _wanted: None, **more):
        how = {"form": "paper", "label": None, "paths": {}, "allow_substitutes": False, **more}
        one = Pushed("push-0123456789ab", name, f"{name}.toml", priority=70, pushed_utc_ns=1, **how)
        return admitted(one, text, config=config, installed=registry, missing_requirement=missing, now=NOW)

    return admit


def survey(**files):
    values = {"names": "names.csv", "folder": "survey", **files}
    told = "\n".join(f"{k} = {v!r}".replace("'", '"') for k, v in values.items())
    return f'{HEAD}experiment = "reachability"\n[step.parameters]\n{told}\n'


def test_a_good_one_is_as_it_was_pushed_and_one_of_the_probes_own_package_too(admit):
    good = f'{HEAD}experiment = "download"\n[step.parameters]\nbytes = 5\n'
    made = admit(good, paths={"a": "two"}, label="walk", timezone="Asia/Tokyo")
    assert (made.origin, made.label, made.paths["a"]) == (Origin("push-0123456789ab", 70), "walk", "two")
    assert made.campaign.timezone == "Asia/Tokyo"
    made = admit(None, "adarsh-field", form="short", allow_substitutes=True)
    assert made.text == campaigns.text("adarsh-field")
    for text, name, words in (
        (None, "unheard-of", "unheard-of: this probe has no campaign of that name"),
        (good, "other", "calls itself 'own', pushed as 'other'"),
    ):
        with pytest.raises(CampaignError, match=words):
            admit(text, name)


def test_files_of_one_folder_and_no_others(admit, tmp_path, monkeypatch):
    files = tmp_path / "files"
    files.mkdir()
    (files / "out").symlink_to("/etc")
    monkeypatch.chdir(files)
    admit(survey())
    admit(survey(names=f"{files}/lists/top.csv"))
    for outside in ("/etc/passwd", "../config.toml", "a/../../x", "out/passwd", f"{files}/../token"):
        for parameter in ("names", "folder", "deny"):
            with pytest.raises(
                CampaignError, match=rf"own\.toml:\d+: step s: {parameter} = .* is no file that a pushed"
            ):
                admit(survey(**{parameter: outside}))
    monkeypatch.chdir("/")  # where a service starts: a plain name is no file of that folder then
    with pytest.raises(CampaignError, match="names"):
        admit(survey())


@given(st.text(st.characters(codec="ascii", exclude_categories=["C"], exclude_characters='"\\'), max_size=30))
@hypothesis.settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_name_is_nothing_outside_is_named(admit, tmp_path, monkeypatch, name):
    files = tmp_path / "files"
    files.mkdir(exist_ok=True)
    monkeypatch.chdir(files)
    try:
        made = admit(survey(folder=name))
    except CampaignError:
        return
    (value,) = made.campaign.steps[0].parameters["folder"]
    assert (Path.cwd() / value).resolve().is_relative_to(files.resolve())


def test_links_that_cannot_be_made_here(admit):
    shape = 'experiment = "download"\n[step.parameters]\nbytes = 5\n[step.shape.a]\nrate_bit_per_s = [1e6, 2e6]\n'
    seen = []
    admit(HEAD + shape, missing=lambda wanted: seen.append(len(wanted.shape)))
    assert seen == [2]
    with pytest.raises(CampaignError, match=r"own\.toml:\d+: step s: no HTB"):
        admit(HEAD + shape, missing=lambda _wanted: "no HTB")


def test_no_sysctl_no_server_no_program(admit):
    for more in (
        'experiment = "download"\nsysctl = { "net.ipv4.ip_forward" = 1 }\n',
        'experiment = "download"\n[step.parameters]\nbytes = 5\nsysctl = "net.ipv4.ip_forward=1"\n',
        'experiment = "download"\n[step.parameters]\nbytes = 5\nserver = "http://other"\n',
        'experiment = "reachability"\n[step.parameters]\nnames = "n"\nfolder = "f"\nserver = "http://other"\n',
        'experiment = "../../bin/sh"\n',
        'experiment = "unheard-of"\n',
    ):
        with pytest.raises(CampaignError, match=r"own\.toml:\d+: "):
            admit(HEAD + more)


def test_the_examples_campaigns_fit_the_examples_experiments_and_a_plan():
    examples = Path(__file__).resolve().parents[5] / "collector/examples"
    registry = Registry(examples / "experiments")
    for file in examples.glob("campaigns/*.toml"):
        for form in ("paper", "short"):
            found, left_out = fitted(load(str(file), form=form), registry)
            assert not left_out
            assert plan_fit(estimate(found), 10**10).reason is None, file
