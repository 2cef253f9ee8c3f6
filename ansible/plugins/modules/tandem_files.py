#!/usr/bin/python
"""Brings several files of the checkout to a machine in one step."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: tandem_files
short_description: Bring several text files in one step
description:
  - As ansible.builtin.copy does with each of them, and several times as fast, because a machine is asked once and not three times a file.
  - A file is written anew only when its content differs, and is replaced as a whole. For what anybody may read; secrets are
    ansible.builtin.copy's.
options:
  src:
    description: Files of the role's folder files, or with their whole path. UTF-8.
    type: list
    elements: str
    required: true
  dest:
    description: The folder to put them into, under their own names. It must be there, but for check mode.
    type: path
    required: true
  owner: {description: Whose they are., type: str, default: root}
  group: {description: Which group's., type: str, default: root}
  mode: {description: Their rights, as in chmod., type: raw, required: true}
author: The Tandem authors
"""

EXAMPLES = r"""
- name: The units are there
  tandem_files:
    src: [tandem-backup.service, tandem-backup.timer]
    dest: /etc/systemd/system
    mode: "0644"
"""

RETURN = r"""
written: {description: Paths of what was written, or in check mode would be, type: list, elements: str, returned: success}
"""


def replace(module: AnsibleModule, path: Path, content: bytes) -> None:
    """``path`` is ``content`` from one moment to the next."""
    handle, name = tempfile.mkstemp(dir=module.tmpdir)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    module.atomic_move(name, str(path))


def main() -> None:
    """``files``, content by name, is what the action plugin of the same name makes of ``src``."""
    module = AnsibleModule(
        argument_spec={
            "files": {"type": "dict", "required": True},
            "dest": {"type": "path", "required": True},
            "owner": {"type": "str", "default": "root"},
            "group": {"type": "str", "default": "root"},
            "mode": {"type": "raw", "required": True},
        },
        supports_check_mode=True,
    )
    folder = Path(module.params["dest"])
    if not folder.is_dir() and not module.check_mode:
        module.fail_json(msg=f"{folder} is not a folder; mend: make it before")
    written, changed, told = [], False, []
    for name, text in module.params["files"].items():
        path, content = folder / name, text.encode()
        before = path.read_bytes() if path.is_file() else None
        if before != content:
            written.append(str(path))
            shown = "" if before is None else before.decode(errors="replace")
            told.append({"before_header": str(path), "after_header": str(path), "before": shown, "after": text})
            if not module.check_mode:
                replace(module, path, content)
        if path.exists():
            rights = {"path": str(path), "owner": module.params["owner"], "group": module.params["group"]}
            rights |= {"mode": module.params["mode"], "secontext": [None, None, None], "attributes": None}
            changed = module.set_fs_attributes_if_different(rights, False) or changed
    module.exit_json(changed=changed or bool(written), written=written, diff=told)


if __name__ == "__main__":
    main()
