"""Every command of the bench ends a mistake in one line that names the command, with the exit status that the mistake has."""

import pytest

from tandem_bench.cli.main import main


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("scenario show nonesuch", 2, "nonesuch: no such scenario; give a file, or one of: commute"),
        ("scenario show still --duration 10 --out /dev/null/x", 3, "Not a directory; hint: "),
        ("modem --family quectel --timeline /nowhere --link x", 2, "/nowhere: No such file or directory"),
        ("gadget modem --timeline /nowhere", 2, "/nowhere: No such file or directory"),
        ("kits --kits 1", 2, "give 2 to 8 kits"),
        ("campaign --blocks 3", 2, "go with --file"),
        ("demo --duration 3", 2, "give 30 to 7200 seconds"),
        ("demo --probe P", 2, "with --from-run DIR"),
        ("compare /nowhere /nowhere", 2, "/nowhere/campaign.json: cannot be read"),
        ("kernel --image /nowhere", 2, "/nowhere: No such file or directory"),
        ("run --scenario still --out /dev/null/x", 2, "name another folder with --out"),
    ],
)
def test_a_mistake_is_one_line(words: str, status: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == status
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"tandem-bench {words.split()[0]}: ")
    assert said in line
