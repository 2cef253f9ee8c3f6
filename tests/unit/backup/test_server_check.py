"""`tandem-server check`: the file as the services read it, and nothing started."""

from tandem_server.cli.main import main


def test_a_right_file_is_right(tmp_path, capsys):
    file = tmp_path / "server.toml"
    file.write_text("[listen]\ngateway_port = 9443\n")
    assert main(["check", "--config", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: right\n"
    assert sorted(tmp_path.iterdir()) == [file]


def test_a_wrong_key_is_one_line_with_its_place(tmp_path, capsys):
    file = tmp_path / "server.toml"
    file.write_text("[listen]\nport = 9443\n")
    assert main(["check", "--config", str(file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{file}:2: unknown key 'port'" in line
    assert "mend" in line
