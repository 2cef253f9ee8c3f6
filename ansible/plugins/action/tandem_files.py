"""The part of ``tandem_files`` that runs where the playbook does: reads what is brought (library: plugins/modules/tandem_files.py)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """Hands the files' contents over, by their names."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """What the module says. AnsibleActionFail for a file that is not there or two of one name."""
        super().run(tmp, task_vars)
        given = dict(self._task.args)
        files: dict[str, str] = {}
        for source in given.pop("src", None) or []:
            file = Path(self._find_needle("files", source))
            if file.name in files:
                raise AnsibleActionFail(f"two files are called {file.name}")
            files[file.name] = file.read_text(encoding="utf-8")
        told: dict[str, Any] = self._execute_module(
            module_name="tandem_files", module_args=given | {"files": files}, task_vars=task_vars
        )
        return told
