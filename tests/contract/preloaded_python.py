"""A Python that has boto3 and Ansible's modules loaded already: each would else spend half a second of processor on the same imports.

python preloaded_python.py serve SOCKET      # loads, then runs what it is sent, each in a child; ends with its stdin
python -IS preloaded_python.py run SOCKET    # stands for `python`: runs the program on its stdin in such a child
"""

import json
import os
import socket
import sys
import threading
from typing import NoReturn


def run(path: str) -> int:
    """Standard input, output and error, folder and environment go over; the status comes back."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        socket.send_fds(server, [b"-"], [0, 1, 2])
        server.sendall(json.dumps([os.getcwd(), dict(os.environ)]).encode())  # noqa: PTH109 - pathlib would be loaded
        server.shutdown(socket.SHUT_WR)
        return int(server.recv(16) or b"99")


def child(connection: socket.socket) -> NoReturn:
    status = 98
    try:
        _, fds, _, _ = socket.recv_fds(connection, 1, 3)
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
        with connection.makefile("rb") as rest:
            folder, environment = json.load(rest)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
        sys.argv = ["-"]
        try:
            exec(compile(sys.stdin.read(), "<stdin>", "exec"), {"__name__": "__main__"})  # noqa: S102 - that is what `python -` does
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
        connection.sendall(str(status).encode())
    finally:
        os._exit(status)


LOADED = {
    "ansible.modules": ("file", "known_hosts", "stat", "tempfile", "uri"),
    "ansible_collections.amazon.aws.plugins.modules": ("ec2_instance", "ec2_vpc_route_table", "route53"),
    "ansible_collections.community.crypto.plugins.modules": ("openssh_keypair",),
}
"""With what these import. Ansible sends each module as an archive of source text, which would be compiled again each time; a child takes
what is loaded, the files that the archive was packed from."""


def serve(path: str) -> None:
    import importlib
    import signal

    import boto3
    import botocore.loaders

    # Each session of boto3 has a loader of its own, which would read the description of EC2 (a tenth of a second) again.
    shared = boto3.Session()._loader
    botocore.loaders.create_loader = lambda _search_path=None: shared
    botocore.session.create_loader = botocore.loaders.create_loader
    for service in ("ec2", "route53"):
        boto3.client(service, region_name="eu-central-1")
    for package, names in LOADED.items():
        for name in names:
            importlib.import_module(f"{package}.{name}")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        if not os.fork():
            child(connection)
        connection.close()


if __name__ == "__main__":
    sys.exit({"run": run, "serve": serve}[sys.argv[1]](sys.argv[2]))
