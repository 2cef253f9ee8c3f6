#!/usr/bin/python
"""Ansible module: a new instance's SSH host keys, from its console into a known_hosts file."""

from __future__ import annotations

import base64
import os
import time
from pathlib import Path
from typing import Protocol

from ansible.module_utils.console_keys import host_keys, known_hosts, tells_of
from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule

DOCUMENTATION = """
module: aws_console_host_keys
short_description: SSH host keys of a new EC2 instance, from its console
description:
  - Waits until cloud-init has printed the keys on the instance's console, which AWS's API tells, and writes them as a known_hosts file.
  - A file that was made for this instance at this address is left alone, since a console forgets.
author: The Tandem authors (@tandem)
extends_documentation_fragment:
  - amazon.aws.common.modules
  - amazon.aws.region.modules
  - amazon.aws.boto3
options:
  instance_id:
    description: The instance.
    type: str
    required: true
  address:
    description: Its public address, as people reach it.
    type: str
    required: true
  known_hosts:
    description: The file to write.
    type: path
    required: true
  wait_s:
    description: How long to wait, in seconds.
    type: int
    default: 600
"""

EXAMPLES = """
- name: SSH host keys from the instance's console
  aws_console_host_keys:
    instance_id: i-0123456789abcdef0
    address: 192.0.2.1
    known_hosts: inventories/mine/aws.yml.known_hosts
"""

RETURN = """
keys:
  description: The keys, kind and base64.
  returned: when they were asked for
  type: list
  elements: str
"""

BETWEEN_S = 5.0


class Client(Protocol):
    """What is used of boto3's client."""

    def get_console_output(self, **arguments: object) -> dict[str, object]: ...


def console(client: Client, instance: str) -> str:
    """What the console said last. Newer machines tell at once, older ones only some minutes after a start."""
    from botocore.exceptions import ClientError  # only where boto3 is; AnsibleAWSModule says so where it is not

    try:
        answer = client.get_console_output(InstanceId=instance, Latest=True)
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") != "UnsupportedOperation":
            raise
        answer = client.get_console_output(InstanceId=instance)
    text = str(answer.get("Output", ""))
    try:
        return base64.b64decode(text, validate=True).decode("utf-8", "replace")
    except ValueError:
        return text  # botocore has decoded it already


def main() -> None:
    """Wait, write, say."""
    module = AnsibleAWSModule(
        argument_spec={
            "instance_id": {"type": "str", "required": True},
            "address": {"type": "str", "required": True},
            "known_hosts": {"type": "path", "required": True, "no_log": False},
            "wait_s": {"type": "int", "default": 600},
        },
        supports_check_mode=True,
    )
    instance, address = module.params["instance_id"], module.params["address"]
    file = Path(module.params["known_hosts"])
    if file.exists() and tells_of(file.read_text(), address, instance):
        module.exit_json(changed=False)
    if module.check_mode:
        module.exit_json(changed=True)
    client = module.client("ec2")
    until = time.monotonic() + module.params["wait_s"]
    keys: list[str] = []
    while not keys:
        try:
            keys = host_keys(console(client, instance))
        except Exception as error:  # noqa: BLE001 - Ansible wants one answer, whatever AWS said
            module.fail_json_aws(error, msg=f"the console of {instance} cannot be read")
        if not keys and time.monotonic() > until:
            module.fail_json(
                msg=f"{instance} printed no SSH host keys within {module.params['wait_s']} s; mend: run again, or look at its console"
            )
        if not keys:
            time.sleep(BETWEEN_S)
    made = file.with_name(file.name + ".tmp")
    with made.open("w") as out:
        out.write(known_hosts(address, instance, keys))
        out.flush()
        os.fsync(out.fileno())
    made.replace(file)
    module.exit_json(changed=True, keys=keys)


if __name__ == "__main__":
    main()
