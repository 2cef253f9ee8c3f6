"""``tandem-server report --run ID``: the page of one run that ``serve pages`` shows, as a file."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from tandem_server.analysis.one_run import account_of
from tandem_server.cli.configuration import ServerConfig
from tandem_server.cli.run_viewer_process import store_or_why
from tandem_server.cli.stop import ConfigError, EnvironmentLacks
from tandem_server.cli.stores import open_registry_to_read
from tandem_server.report.run_page import encoded, render


def report_run(config: ServerConfig, run: str, out: Path | None) -> int:
    """Write the page to ``out`` (by default ``ID.html`` here). 0, or 1 when something promised is missing, or records cannot be read."""
    with contextlib.ExitStack() as held:
        registry = held.enter_context(open_registry_to_read(config))
        store = store_or_why(config)
        if not isinstance(store, str):
            held.callback(store.close)
        account = account_of(registry, store, run, config.store.retention_days)
    if account is None:
        raise ConfigError(f"no manifest of run {run!r} has arrived; hint: tandem-server ledger lists runs")
    page = out or Path(f"{account.run.id}.html")
    write_whole(page, encoded(render(account, linked=False)))
    print(page)
    for line in account.trouble:
        print(f"tandem-server report: missing: {line}", file=sys.stderr)
    return 1 if account.trouble or account.row is None or account.row.missing else 0


def write_whole(path: Path, content: bytes) -> None:
    """Whole or not at all; EnvironmentLacks."""
    draft = path.with_name(path.name + ".tmp")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)  # of a full disk it holds the last bytes
        raise EnvironmentLacks(
            f"{path}: {error.strerror}; hint: free space, or give write permission on the folder"
        ) from error
