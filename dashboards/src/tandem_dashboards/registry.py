"""Which boards there are: every module in ``boards/`` with a function ``board()``."""

from __future__ import annotations

import importlib
import pkgutil

from tandem_dashboards import boards
from tandem_dashboards.board import Board, BoardError

UID_PREFIX = "tandem-"


def names() -> list[str]:
    """Names of all boards: of their modules, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(boards.__path__))


def load(name: str) -> Board:
    """The board ``name``; BoardError when there is none, or its uid is not its name's."""
    if name not in names():
        raise BoardError(f"there is no board {name!r}; there are {', '.join(names())}")
    board = importlib.import_module(f"{boards.__name__}.{name}").board()
    if not isinstance(board, Board):
        raise BoardError(f"boards/{name}.py: board() gives no Board")
    if board.uid != UID_PREFIX + name.replace("_", "-"):
        raise BoardError(
            f"boards/{name}.py: its uid is {board.uid!r} and must be {UID_PREFIX + name.replace('_', '-')!r}"
        )
    return board
