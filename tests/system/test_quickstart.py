"""docs/quickstart.md as printed: its commands in their order, on a fresh checkout, from nothing to a kit whose radio is on the server.

AWS is moto's, its machine a container whose first boot is the real cloud-init with what AWS was told; the card is a file, and the kit a
container that starts with what is on it. The commands are unchanged but for ``desk.SUBSTITUTIONS``; what a fleet here has beside a
user's is ``desk.surroundings``.
"""

from __future__ import annotations

import sys

import pytest
from targets import printed
from targets.available import NEEDED
from targets.available import made as sources
from targets.desk import Desk, desk
from targets.vm_target import REPOSITORY

PAGE = (REPOSITORY / "docs/quickstart.md").read_text(encoding="utf-8")
COMMANDS = printed.commands(PAGE)
SAYS = {
    "fleet new": "made ../fleet",
    "provision aws": "USD a month",
    "provision server": "failed=0",
    "provision probe": "failed=0",
}
"""Words of a command → what the page says that the screen shows when it worked."""

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(3600), NEEDED]


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory):
    with desk(tmp_path_factory.mktemp("quickstart"), sources()) as made:
        yield made
        for command, took_s in made.terminal.took_s.items():
            print(f"{took_s:8.1f} s  {command}", file=sys.stderr)


def test_there_are_ten_commands_at_most() -> None:
    assert len(COMMANDS) <= 10


def test_every_command_works_as_printed(user: Desk) -> None:
    assert [shown for shown in SAYS.values() if shown not in PAGE] == []
    for command in COMMANDS:
        user.run(command)
        said = " ".join(user.terminal.said[command].split())
        assert [text for words, text in SAYS.items() if words in command and text not in said] == []
    assert (user.fleet / "preflight/kit-01.html").is_file()
    assert "`../fleet/preflight/kit-01.html`" in PAGE
    assert user.terminal.used == set(user.terminal.substitutions), "a word that is substituted is on the page no more"
    assert user.happened == set(user.events), "something that a user does between two commands was not reached"
