"""Without --config every command takes the environment's file, else ./server.toml, else /etc/tandem/server.toml."""

import json
from pathlib import Path

import pytest

from support.serve_on_loopback import command
from tandem_server.cli.command import VARIABLE, ConfigError, config_file, found_config_file


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.fixture
def places(tmp_path):
    return tmp_path / "here/server.toml", tmp_path / "etc.toml"


def test_the_nearest_file_is_taken_and_what_the_environment_names_is_not_passed_over(tmp_path, places):
    with pytest.raises(ConfigError, match=r"neither .*here/server.toml nor .*etc.toml is there; hint: .*--config"):
        config_file(None, {}, places)
    for place, environment in ((places[1], {}), (places[0], {}), (tmp_path / "told.toml", "told.toml")):
        place.write_text("")
        variable = {VARIABLE: str(tmp_path / environment)} if environment else {}
        assert config_file(None, variable, places) == place
    assert config_file(tmp_path / "named", {VARIABLE: str(tmp_path / "told.toml")}, places) == tmp_path / "named"
    assert config_file(None, {VARIABLE: ""}, places) == places[0]
    places[0].write_text("")
    with pytest.raises(ConfigError, match=rf"gone.toml: no such file, says {VARIABLE}; hint"):
        config_file(None, {VARIABLE: str(tmp_path / "gone.toml")}, places)


def test_a_folder_that_one_may_not_look_into_is_passed_over_and_a_whole_path_there_is_not(tmp_path, monkeypatch):
    def refused(path):
        raise PermissionError(13, "Permission denied", str(path))

    meant = tmp_path / "etc.toml"
    monkeypatch.setattr(Path, "is_file", refused)
    assert config_file(None, {}, (Path("server.toml"), meant)) == meant


def test_the_commands_work_as_they_are_written(tmp_path, monkeypatch):
    status, out, told = command("ledger", "--json")
    assert (status, out, told.count("\n")) == (2, "", 1)
    none = "tandem-server: no server.toml: neither server.toml nor /etc/tandem/server.toml is there; hint"
    assert (told[: len(none)], found_config_file()) == (none, None)
    (tmp_path / "here/server.toml").write_text("")
    assert command("probe", "add", "probe-1")[1].startswith("tandem_")
    assert [row["name"] for row in json.loads(command("probe", "list", "--json")[1])] == ["probe-1"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other/server.toml").write_text("")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "other/server.toml"))
    assert json.loads(command("probe", "list", "--json")[1]) == []
    monkeypatch.setenv(VARIABLE, str(tmp_path / "gone"))
    assert command("probe", "list")[2].startswith(f"tandem-server: {tmp_path}/gone: no such file, says {VARIABLE}")
