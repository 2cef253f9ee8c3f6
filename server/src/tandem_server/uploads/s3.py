"""Traces in S3, or a service that speaks it: ``s3://BUCKET/PREFIX/PROBE/NAME``, put on condition that nothing is there.

boto3's own transfer sends each object with its SHA-256 (in parts when it is large); the checksum is read back afterwards. Credentials
come from where boto3 looks for them: environment, shared file, the machine's role. Whoever wants more than "this server never overwrites"
gives the bucket versions and an object lock with a default retention; nothing here has to change for it.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from tandem.schema.trace import Encoding
from tandem_server.uploads.store import Held, Stored, TraceStoreDown, places

PART_BYTES = 16 * 1024 * 1024
"""Parts must have 5 MiB at least."""
_MOST_PARTS = 10_000
_CONNECT_S, _READ_S, _ATTEMPTS = 10, 60, 4
_THERE = ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")


def is_in_bucket(place: str) -> bool:
    """Whether a place is one of S3."""
    return place.startswith("s3://")


class TraceBucket:
    """See TraceStore. A client is made once and used by several threads."""

    def __init__(
        self, bucket: str, prefix: str = "", endpoint_url: str | None = None, region: str | None = None,
        encryption: str = "AES256", attempts: int = _ATTEMPTS, read_s: float = _READ_S,
    ) -> None:  # fmt: skip
        """Touches no network. TraceStoreDown without boto3."""
        try:
            boto3, config = importlib.import_module("boto3"), importlib.import_module("botocore.config")
            self._transfer: Any = importlib.import_module("boto3.s3.transfer")
            self._errors: Any = importlib.import_module("botocore.exceptions")
        except ImportError as error:
            raise TraceStoreDown(f"[traces] s3 needs boto3: {error}; hint: pip install boto3") from error
        self._bucket, self._prefix = bucket, prefix.strip("/")
        self._encryption = {} if encryption == "none" else {"ServerSideEncryption": encryption}
        settings = config.Config(
            connect_timeout=_CONNECT_S,
            read_timeout=read_s,
            retries={"total_max_attempts": attempts, "mode": "standard"},
        )
        try:
            self._client: Any = boto3.client("s3", endpoint_url=endpoint_url, region_name=region, config=settings)
        except (self._errors.BotoCoreError, ValueError) as error:
            raise TraceStoreDown(f"s3://{bucket}: {error}; hint: correct [traces] s3") from error
        self._faults = (self._errors.BotoCoreError, self._errors.ClientError)
        for operation in ("PutObject", "CompleteMultipartUpload"):  # boto3's transfer passes no condition on
            self._client.meta.events.register(f"before-parameter-build.s3.{operation}", _only_if_new)

    def put(self, stream: Path, probe: str, name: str, sha256: str, encoding: Encoding) -> Stored:
        """See TraceStore."""
        sums = _sums(stream)
        metadata = {"sha256": sha256, "encoding": encoding, "stream-sha256": sums.whole.hex(), "probe": probe}
        where = ""
        for place in places(probe, name, sha256, encoding):
            key = f"{self._prefix}/{place}".lstrip("/")
            where = f"s3://{self._bucket}/{key}"
            try:
                there = self._look(key)
                if there is None:
                    self._send(stream, key, sums, metadata)
                    there = self._look(key)
                if there is not None and there.get("Metadata", {}).get("stream-sha256") == metadata["stream-sha256"]:
                    self._check(key, there, sums)
                    return Stored(where, sums.length)
            except (*self._faults, OSError) as error:
                raise TraceStoreDown(f"{where}: {error}") from error
        raise TraceStoreDown(f"{where}: another object is there; hint: move it away")

    def _look(self, key: str) -> dict[str, Any] | None:
        """What the service tells of the object; None: there is none. Needs s3:ListBucket, else its absence reads as a refusal."""
        try:
            return cast(dict[str, Any], self._client.head_object(Bucket=self._bucket, Key=key, ChecksumMode="ENABLED"))
        except self._errors.ClientError as error:
            if _code(error) in ("404", "NoSuchKey", "NotFound"):
                return None
            raise

    def _send(self, stream: Path, key: str, sums: _Sums, metadata: dict[str, str]) -> None:
        """Put the object if nothing is there. What a service refuses or fails at after it has the object is looked at next."""
        if len(sums.parts) > 1:
            self._abort_earlier(key)
            checksum = {"ChecksumAlgorithm": "SHA256"}
        else:
            checksum = {"ChecksumSHA256": _text(sums.whole)}
        config = self._transfer.TransferConfig(
            multipart_threshold=sums.part_bytes + 1, multipart_chunksize=sums.part_bytes, use_threads=False
        )
        with self._transfer.create_transfer_manager(self._client, config) as manager:
            extra = {"Metadata": metadata, **checksum, **self._encryption}
            try:
                manager.upload(str(stream), self._bucket, key, extra).result()
            except self._errors.ClientError as error:
                if _code(error) not in _THERE:
                    raise

    def _abort_earlier(self, key: str) -> None:
        """What a killed process left of this key: its parts cost money until somebody ends them. Only one process is at a trace."""
        listed = self._client.list_multipart_uploads(Bucket=self._bucket, Prefix=key)
        for one in listed.get("Uploads", []):
            if one["Key"] == key:
                self._client.abort_multipart_upload(Bucket=self._bucket, Key=key, UploadId=one["UploadId"])

    def _check(self, key: str, there: dict[str, Any], sums: _Sums) -> None:
        """Hold what the service says it has against what was sent; where it tells no SHA-256, read the object."""
        where = f"s3://{self._bucket}/{key}"
        if there["ContentLength"] != sums.length:
            raise TraceStoreDown(f"{where} has {there['ContentLength']} bytes, {sums.length} were sent")
        checksum = there.get("ChecksumSHA256")
        if checksum is None:
            digest = hashlib.sha256()
            with self.open(where) as body:
                while piece := body.read(1024 * 1024):
                    digest.update(piece)
            checksum = _text(digest.digest())
        if checksum not in (
            _text(sums.whole),
            sums.composite,
            sums.composite.partition("-")[0],
        ):  # not all count the parts
            raise TraceStoreDown(f"{where} has the checksum {checksum}, which is not what was sent")

    def open(self, place: str, offset: int = 0) -> BinaryIO:
        """See TraceStore."""
        key = place.removeprefix(f"s3://{self._bucket}/")
        part = {"Range": f"bytes={offset}-"} if offset else {}
        try:
            body = self._client.get_object(Bucket=self._bucket, Key=key, **part)["Body"]
        except self._errors.ClientError as error:
            if _code(error) in ("404", "NoSuchKey", "NotFound"):
                raise FileNotFoundError(place) from error
            raise TraceStoreDown(f"{place}: {error}") from error
        except self._errors.BotoCoreError as error:
            raise TraceStoreDown(f"{place}: {error}") from error
        return cast(BinaryIO, io.BufferedReader(_Body(place, body, self._errors.BotoCoreError), 256 * 1024))

    def held(self, probe: str) -> Held:
        """See TraceStore: every version, so what an object lock still holds is seen."""
        sizes = [int(one.get("Size", 0)) for one in self._versions(probe)]
        return Held(len(sizes), sum(sizes))

    def erase(self, probe: str) -> None:
        """See TraceStore. A version that an object lock holds stays until its time is over: TraceStoreDown says which."""
        for one in self._versions(probe):
            where = {"Key": one["Key"], "VersionId": one["VersionId"]}
            try:
                self._client.delete_object(Bucket=self._bucket, **where)
            except self._faults as error:
                raise TraceStoreDown(f"s3://{self._bucket}/{one['Key']}: {error}") from error

    def _versions(self, probe: str) -> list[dict[str, Any]]:
        """Versions and marks of deletion below the probe's name."""
        below = "/".join(part for part in (self._prefix, probe) if part) + "/"
        try:
            pages = self._client.get_paginator("list_object_versions").paginate(Bucket=self._bucket, Prefix=below)
            return [one for page in pages for kind in ("Versions", "DeleteMarkers") for one in page.get(kind, [])]
        except self._faults as error:
            raise TraceStoreDown(f"s3://{self._bucket}/{below}: {error}") from error


class _Body(io.RawIOBase):
    """An object's bytes; what breaks on the way is the store's fault, and said so."""

    def __init__(self, place: str, body: Any, errors: type[Exception]) -> None:  # noqa: ANN401  boto3 has no types
        self._place, self._body, self._errors = place, body, errors

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:  # noqa: ANN401  a buffer
        try:
            piece = self._body.read(len(into))
        except (self._errors, OSError) as error:
            raise TraceStoreDown(f"{self._place}: {error}") from error
        into[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._body.close()
        super().close()


@dataclass(frozen=True, slots=True)
class _Sums:
    """SHA-256 of the stream and of each part that it is sent in."""

    length: int
    whole: bytes
    parts: tuple[bytes, ...]
    part_bytes: int

    @property
    def composite(self) -> str:
        """As S3 tells the checksum of an object of several parts: the hash of the parts' hashes, and how many."""
        return f"{_text(hashlib.sha256(b''.join(self.parts)).digest())}-{len(self.parts)}"


def _sums(stream: Path) -> _Sums:
    length, whole, parts = stream.stat().st_size, hashlib.sha256(), []
    mebibytes = max(PART_BYTES >> 20, -(-length // (_MOST_PARTS << 20)))
    with stream.open("rb") as file:
        while part := file.read(mebibytes << 20):
            whole.update(part)
            parts.append(hashlib.sha256(part).digest())
    return _Sums(length, whole.digest(), tuple(parts), mebibytes << 20)


def _only_if_new(params: dict[str, Any], **_event: object) -> None:
    params["IfNoneMatch"] = "*"


def _text(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


def _code(error: Any) -> str:  # noqa: ANN401  boto3 has no types
    return str(error.response.get("Error", {}).get("Code", ""))
