"""Where the link's program is found, and the options it is started with."""

from __future__ import annotations

import pytest

from tandem_bench.cli.main import main
from tandem_bench.link import build
from tandem_bench.link.emulator import Constant, LinkError, LinkProcess, LinkSpec


def program(path, text="#!/bin/sh\nexit 3\n"):
    path.write_text(text)
    path.chmod(0o755)
    return path


def spec(**more):
    return LinkSpec("/proc/1/ns/net", "wwan0", "/proc/2/ns/net", "ran0", Constant(1e6, 2e6), **more)


def test_the_environment_comes_first(monkeypatch, tmp_path):
    monkeypatch.setenv(build.VARIABLE, str(program(tmp_path / "mine")))
    assert build.find_binary() == tmp_path / "mine"


def test_a_missing_program_or_a_file_that_cannot_be_run_says_how_to_get_it(monkeypatch, tmp_path):
    program(tmp_path / "text").chmod(0o644)
    for name in ("none", "text"):
        monkeypatch.setenv(build.VARIABLE, str(tmp_path / name))
        with pytest.raises(build.LinkMissingError, match=r"TANDEM_LINK names it.*mend: \./kit setup"):
            build.find_binary()


def test_the_repository_is_searched(monkeypatch, tmp_path):
    monkeypatch.delenv(build.VARIABLE, raising=False)
    monkeypatch.setattr(build, "_repository", lambda: tmp_path)
    (tmp_path / "build" / "bin").mkdir(parents=True)
    with pytest.raises(build.LinkMissingError, match=r"build/bin/tandem-link.*\./kit setup"):
        build.find_binary()
    program(tmp_path / "build" / "bin" / "tandem-link")
    assert build.find_binary() == tmp_path / "build" / "bin" / "tandem-link"


def test_the_command_line_without_a_program_ends_with_3(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv(build.VARIABLE, str(tmp_path / "none"))
    assert main(["link", "--help"]) == 3
    assert capsys.readouterr().err.count("\n") == 1


def test_a_program_that_ends_at_once_gives_its_last_line(monkeypatch, tmp_path):
    failing = program(tmp_path / "link", "#!/bin/sh\necho noise >&2\necho 'tandem-link: no TUN here' >&2\nexit 3\n")
    monkeypatch.setenv(build.VARIABLE, str(failing))
    with pytest.raises(LinkError, match=r"^tandem-link has ended: no TUN here$"):
        LinkProcess(spec(), wait_s=60).start()


def test_a_program_that_does_not_answer_is_ended(monkeypatch, tmp_path):
    monkeypatch.setenv(build.VARIABLE, str(program(tmp_path / "link", "#!/bin/sh\nexec sleep 60\n")))
    link = LinkProcess(spec(), wait_s=0.2)
    with pytest.raises(LinkError, match=r"does not answer within 0\.2 s"):
        link.start()
    with pytest.raises(LinkError, match="does not run"):
        link.set("down", "rate", 1)
    assert link.stop() is None


def test_answers_are_read_line_by_line(monkeypatch, tmp_path):
    script = (
        '#!/bin/sh\nprintf "rea"; sleep 0.05; printf "dy\\n"\nread a; echo "ok"\nread b; echo "error: no $b"; read c\n'
    )
    monkeypatch.setenv(build.VARIABLE, str(program(tmp_path / "link", script)))
    with LinkProcess(spec(), wait_s=60) as link:
        link.set("down", "rate", 5)
        with pytest.raises(LinkError, match=r"^tandem-link: no clear up loss$"):
            link.clear("up", "loss")
