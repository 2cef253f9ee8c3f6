"""A large trace through the gateway: bytes a second, CPU a byte, memory; as ratios to a sink that only writes what comes over TLS.

    PYTHONPATH=collector/src:server/src python tests/bench/bench_traces.py [--bytes 1000000000] [--encoding gzip]

Both run as processes of their own on loopback; the same client sends the same stream, 8 MiB a request to the gateway, in one to the sink.
"""

from __future__ import annotations

import argparse
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "contract"))

from processes import cpu_s
from trace_gateway import TraceGateway

from tandem.schema.trace import CHUNK_BYTES, Offer, encoded, offer_of

_REQUEST_BYTES = 8 << 20
_SINK = """
import socket, ssl, sys, os
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain(sys.argv[1], sys.argv[2])
listener = socket.create_server(("127.0.0.1", 0)); print(listener.getsockname()[1], flush=True)
connection = context.wrap_socket(listener.accept()[0], server_side=True)
room = memoryview(bytearray(262144))
with open(sys.argv[3], "wb", 0) as file:
    while got := connection.recv_into(room):
        file.write(room[:got])
    os.fsync(file.fileno())
connection.close()
"""


def peak_mib(pid: int) -> float:
    """The most memory that a process had resident so far."""
    line = next(one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def made(folder: Path, size: int, encoding: str) -> tuple[Path, Offer]:
    """A stream on disk, half of it noise as headers of packets are, and its offer."""
    file, stream, noise = folder / "file", folder / "stream.offered", random.Random(1)
    with file.open("wb") as out:
        for at in range(0, size, 1 << 16):
            length = min(1 << 16, size - at)
            out.write((noise.randbytes(length // 2) + bytes(length))[:length])
    with file.open("rb") as content, stream.open("wb") as out:
        offer = offer_of(content, "captures/large.pcap", "run-1", encoding, CHUNK_BYTES)
        content.seek(0)
        while part := content.read(CHUNK_BYTES):
            out.write(encoded(part, encoding))
    file.unlink()
    return stream, offer


def through_gateway(gateway: TraceGateway, stream: Path, offer: Offer) -> tuple[float, float, float, float]:
    """Seconds until all was sent, seconds until the receipt, CPU seconds, peak MiB."""
    pid = gateway.process.pid
    idle_mib, before_s, began_s = peak_mib(pid), cpu_s(pid), time.monotonic()
    assert gateway.offer(offer)[1]["state"] == "receiving"
    answer = {"state": "receiving", "offset": 0}
    with stream.open("rb") as file:
        while answer["state"] == "receiving" and answer["offset"] < offer.stream_bytes:
            last_s = time.monotonic()
            _, answer = gateway.send(offer, answer["offset"], file.read(_REQUEST_BYTES))
            if "error" in answer:
                break
    while answer.get("state") != "received":  # 503 while it is put into the store
        time.sleep(0.2)
        answer = gateway.state(offer)[1]
    done_s = time.monotonic()
    print(f"gateway: {idle_mib:.0f} MiB before the trace, {peak_mib(pid):.0f} MiB at the peak")
    return last_s - began_s, done_s - began_s, cpu_s(pid) - before_s, peak_mib(pid)


def through_sink(gateway: TraceGateway, stream: Path) -> tuple[float, float]:
    """Seconds and CPU seconds of the plain copy."""
    tls = gateway.folder / "tls"
    command = [sys.executable, "-c", _SINK, tls / "server.pem", tls / "server.key", gateway.folder / "copy"]
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True) as sink:
        assert sink.stdout is not None
        port = int(sink.stdout.readline())
        began_s = time.monotonic()
        plain = socket.create_connection(("127.0.0.1", port))
        with gateway.context.wrap_socket(plain, server_hostname="127.0.0.1") as secured, stream.open("rb") as file:
            while piece := file.read(1 << 18):
                secured.sendall(piece)
            secured.unwrap()
        # Its CPU time is only told when it has ended: of all children, without those that ended before.
        before = os.times()
        sink.wait()
        after = os.times()
    took_s = time.monotonic() - began_s
    (gateway.folder / "copy").unlink()
    used = (after.children_user + after.children_system) - (before.children_user + before.children_system)
    return took_s, used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=256 << 20, help="of the file (default: 256 MiB)")
    parser.add_argument("--encoding", choices=("identity", "gzip"), default="identity")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        gateway = TraceGateway(Path(folder))
        gateway.start()
        try:
            stream, offer = made(Path(folder), args.bytes, args.encoding)
            length = offer.stream_bytes
            copy_s, copy_cpu_s = through_sink(gateway, stream)
            sent_s, done_s, gateway_cpu_s, _ = through_gateway(gateway, stream, offer)
        finally:
            gateway.end()
    print(f"{args.encoding}: file {args.bytes}, stream {length} bytes")
    print(f"plain copy over TLS: {length / copy_s / 1e6:.0f} MB/s, {copy_cpu_s / length * 1e9:.2f} CPU s/GB")
    print(
        f"gateway: {length / sent_s / 1e6:.0f} MB/s until the last request, {length / done_s / 1e6:.0f} MB/s to the receipt,"
        f" {gateway_cpu_s / length * 1e9:.2f} CPU s/GB"
    )
    print(f"ratios to the copy: rate {copy_s / done_s:.2f}, CPU {gateway_cpu_s / copy_cpu_s:.2f}")


if __name__ == "__main__":
    main()
