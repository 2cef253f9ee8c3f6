"""``[traces]`` of server.toml: where traces are kept, and how much of them is taken."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\Z")
_PREFIX = re.compile(r"(?:[A-Za-z0-9!_.*'()-]+/?)*\Z")


@dataclass(frozen=True, slots=True)
class S3Bucket:
    """``prefix`` before every key; ``endpoint_url``: another service than AWS; ``region``: else the environment's. Credentials come
    from the environment or the machine's role, never from here. ``encryption`` by the service: its own keys, the bucket's KMS key, or none
    where the service has none."""

    bucket: str = ""
    prefix: str = "traces"
    endpoint_url: str | None = None
    region: str | None = None
    encryption: Literal["AES256", "aws:kms", "none"] = "AES256"


@dataclass(frozen=True, slots=True)
class TraceFiles:
    """``folder``: received traces, and what is on its way; with ``s3`` only the latter, received ones go there. Bytes a day are
    those of one probe. ``unfinished_days``: after which what nothing comes for is given up. ``analyse``: tables of captures are made when
    they come, in ``analyse_workers`` processes."""

    folder: Path = Path("traces")
    s3: S3Bucket | None = None
    trace_bytes: int = 16_000_000_000
    probe_bytes_per_day: int = 20_000_000_000
    unfinished_per_probe: int = 16
    unfinished_days: float = 14.0
    reserve_bytes: int = 1_000_000_000
    analyse: bool = True
    analyse_workers: int = 1


def traces_fault(traces: TraceFiles) -> tuple[str, str] | None:
    """The key and what is wrong with it, with the mend; None: all is right."""
    for key in ("trace_bytes", "probe_bytes_per_day", "unfinished_per_probe", "unfinished_days"):
        if not 0 < getattr(traces, key) < 1e18:
            return key, f"{key} is {getattr(traces, key)}; hint: a number above 0"
    if not 0 <= traces.reserve_bytes < 1e18:
        return "reserve_bytes", f"reserve_bytes is {traces.reserve_bytes}; hint: 0 or more"
    if not 1 <= traces.analyse_workers <= 1024:
        return "analyse_workers", f"analyse_workers is {traces.analyse_workers}; hint: 1 to 1024"
    if traces.s3 is None:
        return None
    if not _BUCKET.match(traces.s3.bucket):
        return "s3", f"s3 bucket is {traces.s3.bucket!r}; hint: the bucket's name, 3 to 63 of a-z, 0-9, '.', '-'"
    if len(traces.s3.prefix) > 200 or not _PREFIX.match(traces.s3.prefix):
        return "s3", f"s3 prefix is {traces.s3.prefix!r}; hint: parts of letters and digits with '/' between"
    url = traces.s3.endpoint_url
    if url is not None and not re.match(r"https?://[^/\s@]+/?\Z", url):
        return "s3", f"s3 endpoint_url is {url!r}; hint: https://HOST[:PORT]"
    return None
