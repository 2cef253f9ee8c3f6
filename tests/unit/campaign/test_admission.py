"""What a pushed campaign may not do on a probe."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_check import CONFIG

from tandem import campaigns
from tandem.app.campaign.admission import admitted
from tandem.app.campaign.progress import Origin
from tandem.app.campaign.state import Moment
from tandem.app.config import parse
from tandem.app.registry import Registry
from tandem.schema.campaign import CampaignError
from tandem.schema.campaign_queue import Pushed

NOW = Moment("boot", 1.0)
HEAD = 'format = "tandem-campaign-file/1"\nname = "own"\ntitle = "t"\nroles = ["a", "b"]\n[[step]]\nname = "s"\n'


@pytest.fixture(scope="module")
def installed():
    return Registry(None)


@pytest.fixture
def admit(installed, tmp_path):
    config = parse(CONFIG, tmp_path / "config.toml")

    def admit(text, name="own", lack=lambda _wanted: None, **more):
        how = {"form": "paper", "label": None, "paths": {}, "allow_substitutes": False, **more}
        one = Pushed("push-0123456789ab", name, f"{name}.toml", priority=70, pushed_utc_ns=1, **how)
        return admitted(one, text, config=config, installed=installed, lack=lack, now=NOW)

    return admit


def survey(**files):
    values = {"names": "names.csv", "folder": "survey", **files}
    told = "\n".join(f"{k} = {v!r}".replace("'", '"') for k, v in values.items())
    return f'{HEAD}experiment = "reachability"\n[step.parameters]\n{told}\n'


def test_a_good_one_is_as_it_was_pushed(admit):
    made = admit(
        f'{HEAD}experiment = "download"\n[step.parameters]\nbytes = 5\n',
        paths={"a": "two"},
        label="walk",
        timezone="Asia/Tokyo",
    )
    assert (made.origin, made.label, made.paths["a"]) == (Origin("push-0123456789ab", 70), "walk", "two")
    assert made.campaign.timezone == "Asia/Tokyo"


def test_one_of_the_probes_own_package(admit):
    made = admit(None, "adarsh-field", form="short", allow_substitutes=True)
    assert made.text == campaigns.text("adarsh-field")
    with pytest.raises(CampaignError, match="unheard-of: this probe has no campaign of that name"):
        admit(None, "unheard-of")


def test_another_name_than_it_was_pushed_with(admit):
    with pytest.raises(CampaignError, match="calls itself 'own', pushed as 'other'"):
        admit(f'{HEAD}experiment = "download"\n[step.parameters]\nbytes = 5\n', "other")


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
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    admit(HEAD + shape, lack=lambda wanted: seen.append(len(wanted.shape)))
    assert seen == [2]
    with pytest.raises(CampaignError, match=r"own\.toml:\d+: step s: no HTB"):
        admit(HEAD + shape, lack=lambda _wanted: "no HTB")


@pytest.mark.parametrize(
    "more",
    [
        'experiment = "download"\n[step.parameters]\nbytes = 5\n[step.sysctl]\n"net.ipv4.ip_forward" = 1\n',
        'experiment = "download"\nsysctl = { "net.ipv4.ip_forward" = 1 }\n',
        'experiment = "download"\n[step.parameters]\nbytes = 5\nsysctl = "net.ipv4.ip_forward=1"\n',
        'experiment = "download"\n[step.parameters]\nbytes = 5\nserver = "http://other"\n',
        'experiment = "reachability"\n[step.parameters]\nnames = "n"\nfolder = "f"\nserver = "http://other"\n',
        'experiment = "../../bin/sh"\n',
        'experiment = "unheard-of"\n',
    ],
)
def test_no_sysctl_no_server_no_program(admit, more):
    with pytest.raises(CampaignError, match=r"own\.toml:\d+: "):
        admit(HEAD + more)
