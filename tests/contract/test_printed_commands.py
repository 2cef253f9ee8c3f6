"""Every command that the texts for people print is understood by the program that it names, and every file, unit and script is there."""

import argparse
import functools
import re
import shlex
import subprocess
from pathlib import Path

import botocore.session
import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from botocore.validate import ParamValidator

from tandem.cli.main import main as probe_main
from tandem.cli.main import parser as probe_parser
from tandem_bench.cli.main import parser as bench_parser
from tandem_dashboards.cli import parser as dashboards_parser
from tandem_fleet.cli import parse as fleet_parse
from tandem_fleet.cli import parser as fleet_parser
from tandem_hardware.__main__ import parser as hardware_parser
from tandem_image.cli import parser as image_parser
from tandem_server.cli.main import parser as server_parser

ROOT = Path(__file__).parents[2]
LISTED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
PAGES = [ROOT / name for name in LISTED if name.endswith(".md") and not name.startswith("tests/")]
PARSERS = {
    "tandem": probe_parser,
    "tandem-server": server_parser,
    "tandem-bench": bench_parser,
    "tandem-dashboards": dashboards_parser,
    "tandem-hardware": hardware_parser,
    "./kit image": image_parser,
}
BEFORE = re.compile(
    r"^(\./kit fleet ssh \S+ -i \S+ )?(sudo )?(-u \S+ )?((\./|/opt/tandem/)?kit run )?(?=tandem|\./kit)"
)
SCRIPTS = {
    "tandem-root": "ansible/roles/base/files/tandem-root",
    "tandem-kernel": "ansible/roles/mptcp/files/tandem-kernel",
}
"""Programs of a kit that are no module of ours."""
SYNOPSIS = re.compile(r"[…|\[]|--help")
"""Several commands in one line."""


def commands(page: Path) -> list[tuple[str, bool]]:
    """Each once, and whether it stands in a block: one in the text may be cut after a subcommand, as in `tandem campaign`."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```\w*\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    lines = [(line, True) for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    spans = [(span, False) for span in re.findall(r"`([^`\n]+)`", text)]
    found = {}
    for line, whole in (*spans, *lines):
        command = re.split(r"\s#|\s>|  +", line.strip())[0].strip()
        for one in (command, BEFORE.sub("", command)):
            one = re.sub(r"^(\./kit run )?python -m tandem_dashboards", "tandem-dashboards", one)
            if re.match(r"(tandem(-server|-bench|-dashboards|-hardware)?|\./kit) [a-z-]", one) and not SYNOPSIS.search(
                one
            ):
                found[one] = whole
    return list(found.items())


def test_every_program_is_printed():
    printed = {command for page in PAGES for command, _ in commands(page)}
    assert {" ".join(command.split()[: 1 + command.startswith("./kit image")]) for command in printed} >= {
        "./kit image",
        "tandem",
        "tandem-server",
        "tandem-bench",
        "tandem-dashboards",
        "tandem-hardware",
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_command_names_is_there(page):
    """Tests and benchmarks, systemd's units of ours, the subcommands of a kit's scripts. Words in capitals stand for any name."""
    text = page.read_text(encoding="utf-8")
    files = re.findall(r"(?:\./kit test|python) (tests/[^`\n]*)", text)
    named = [word for words in files for word in words.split() if word.startswith("tests/") and "NAME" not in word]
    assert [word for word in named if not (ROOT / word).exists()] == []
    units = {name.rpartition("/")[2].removesuffix(".j2") for name in LISTED}
    after = re.findall(r"(?:systemctl|journalctl) ([^`;\n]*)", text)
    own = {word for words in after for word in words.split() if re.fullmatch(r"tandem[a-z.-]*", word)}
    assert {word for word in own if word not in units and f"{word}.service" not in units} == set()
    for name, script in SCRIPTS.items():
        said = (ROOT / script).read_text(encoding="utf-8")
        words = {word for rest in re.findall(rf"{name} ([a-z][a-z -]*)", text) for word in rest.split()}
        assert {word for word in words if word not in said} == set()


def test_the_quickstart_has_600_words_at_most():
    assert len((ROOT / "docs/quickstart.md").read_text(encoding="utf-8").split()) <= 600


def test_the_figures_of_the_quickstart_are_those_of_the_campaign_that_it_pushes(capsys):
    page = (ROOT / "docs/quickstart.md").read_text(encoding="utf-8")
    (name, form) = re.findall(r"tandem-server campaign push (\S+) --form (\S+) --probes all", page)[0]
    assert probe_main(["campaign", "check", name, "--form", form]) == 0
    told = capsys.readouterr().out
    ((runs, volume),) = re.findall(r"^in all ([0-9]+) runs, .*?; isp_a ([0-9.]+ GB), isp_b \2$", told, re.MULTILINE)
    (days,) = re.findall(r"^at least ([0-9]+) days", told, re.MULTILINE)
    assert f"the pilot campaign below takes {volume} of each SIM in {days} days" in page
    assert f"queues {runs} runs for every kit" in page


def test_what_the_server_costs_is_the_roles_estimate_and_aws_takes_the_command_that_asks_its_list():
    page = (ROOT / "docs/field/provision.md").read_text(encoding="utf-8")
    eu, us, small = (_estimate(**own) for own in ({}, {"aws_region": "us-east-1"}, {"aws_instance_type": "t3.medium"}))
    assert f"about {eu} USD a month in `eu-central-1` and {us} in `us-east-1`" in page
    assert f"saves about {eu - small} USD" in page
    assert f"about {round(eu, -1)} USD a month" in (ROOT / "docs/quickstart.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^ +(aws pricing (?:.*\\\n)*.*)$", page, re.MULTILINE)
    words = shlex.split(command.replace("\\\n", " "))
    assert words[:8] == shlex.split("aws pricing get-products --region us-east-1 --service-code AmazonEC2 --filters")
    filters = [dict(pair.split("=") for pair in word.split(",")) for word in words[8:]]
    takes = botocore.session.get_session().get_service_model("pricing").operation_model("GetProducts").input_shape
    given = {"ServiceCode": words[6], "Filters": filters}
    assert ParamValidator().validate(given, takes).generate_report() == ""
    assert {one["Type"] for one in filters} <= set(takes.members["Filters"].member.members["Type"].enum)


def _estimate(**own: str) -> int:
    """USD a month, as the play tells them."""
    told: dict[str, object] = {}
    for part in ("defaults", "vars"):
        told |= DataLoader().load_from_file(str(ROOT / f"ansible/roles/aws/{part}/main.yml"), trusted_as_template=True)
    said = Templar(loader=DataLoader(), variables=told | own).template(trust_as_template("{{ aws_price }}"))
    return int(re.fullmatch(r"about ([0-9]+) USD a month, .*: an estimate of 2025, .*", said)[1])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_pages_commands_are_understood(page, capsys):
    refused = {}
    for command, whole in commands(page):
        try:
            _understand(command, whole)
        except SystemExit:
            refused[command] = capsys.readouterr().err.strip().splitlines()[-1:]
    assert refused == {}


def _understand(command: str, whole: bool) -> None:
    """As its program's own parser does: SystemExit, and on standard error why."""
    if command.startswith("./kit fleet "):
        words = shlex.split(command)[2:]
        if whole or not _names_a_subcommand(fleet_parser(), words):
            fleet_parse(words)
        return
    if re.match(r"\./kit (demo|campaign) ", command):
        command = command.replace("./kit", "tandem-bench")
    if command.startswith("./kit ") and not command.startswith("./kit image "):
        _kit(command.split()[1:])
        return
    program, words = next((p, command.removeprefix(p)) for p in sorted(PARSERS, key=len)[::-1] if command.startswith(p))
    parser, arguments = _parser(program), [w.lower() if w == "NAME" else w for w in shlex.split(words)]
    if whole or not _names_a_subcommand(parser, arguments):
        parser.parse_args(arguments)


@functools.cache
def _parser(program: str) -> argparse.ArgumentParser:
    return PARSERS[program]()


def _names_a_subcommand(parser: argparse.ArgumentParser, words: list[str]) -> bool:
    for word in words:
        choices = [a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        if not choices or word not in choices[0]:
            return False
        parser = choices[0][word]
    return True


def _kit(words: list[str]) -> None:
    usage = (ROOT / "kit").read_text(encoding="utf-8").partition("<<'TEXT'\n")[2].partition("\nTEXT\n")[0]
    assert words[0] in re.findall(r"^  \./kit ([a-z]+)", usage, re.MULTILINE)
    if words[0] == "provision" and len(words) > 1:
        assert (ROOT / "ansible" / "playbooks" / f"{words[1].removesuffix('.yml')}.yml").exists()
        known = _variables()
        assert [name for name in re.findall(r" -e (\w+)=", " ".join(words)) if name not in known] == []
    if words[0] == "test":
        for path in (word for word in words[1:] if "/" in word):
            assert (ROOT / path.partition("::")[0]).exists()


@functools.cache
def _variables() -> set[str]:
    """Every word of the playbooks and roles."""
    return {
        word for name in LISTED if name.startswith("ansible/") and name.endswith(".yml")
        for word in re.findall(r"\w+", (ROOT / name).read_text(encoding="utf-8"))
    } | {"ansible_host"}  # fmt: skip
