"""Traces in S3, against moto's server: never overwritten, checksums read back, failures in the middle tried again."""

# ruff: noqa: F811  (fixtures of another file)

import hashlib
import random

import pytest
from s3_server import Faulty

from support.s3_bucket import _keys, moto, s3  # noqa: F401  (fixtures)
from support.upload_service_here import Place, offered
from tandem_server.cli.configuration import load
from tandem_server.cli.main import main
from tandem_server.cli.stores import upload_service
from tandem_server.uploads import s3 as trace_s3
from tandem_server.uploads.s3 import TraceBucket
from tandem_server.uploads.store import TraceStoreDown, content_of

CONTENT = random.Random(3).randbytes(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
MEBIBYTE = 1024 * 1024


@pytest.fixture
def service(moto):
    relay = Faulty(moto)
    yield relay
    relay.stop()


@pytest.fixture
def bucket(service, s3):
    assert s3.head_bucket(Bucket="traces-here")
    return TraceBucket("traces-here", "kit/traces", service.url, "eu-north-1", attempts=2, read_s=60)


@pytest.fixture
def stream(tmp_path):
    file = tmp_path / "stream"
    file.write_bytes(CONTENT)
    return file


@pytest.fixture
def large(tmp_path, monkeypatch):
    """In three parts."""
    monkeypatch.setattr(trace_s3, "PART_BYTES", 5 * MEBIBYTE)
    file = tmp_path / "large"
    file.write_bytes(random.Random(4).randbytes(11 * MEBIBYTE))
    return file, hashlib.sha256(file.read_bytes()).hexdigest()


def read(bucket, place):
    with bucket.open(place) as body:
        return body.read()


def uploads(s3):
    return s3.list_multipart_uploads(Bucket="traces-here").get("Uploads", [])


def test_an_object_has_its_name_hash_and_encryption(bucket, s3, stream):
    stored = bucket.put(stream, "probe-1", "captures/a.pcap", SHA256, "identity")
    assert (stored.place, stored.stored_bytes) == ("s3://traces-here/kit/traces/probe-1/captures/a.pcap", len(CONTENT))
    for offset in (0, 1, len(CONTENT) - 1):
        with bucket.open(stored.place, offset) as body:
            assert body.read() == CONTENT[offset:]
    there = s3.head_object(Bucket="traces-here", Key="kit/traces/probe-1/captures/a.pcap")
    assert there["Metadata"]["sha256"] == SHA256
    assert there["ServerSideEncryption"] == "AES256"


def test_the_same_again_is_the_same_and_another_is_kept_by_hash(bucket, service, stream, tmp_path):
    first = bucket.put(stream, "probe-1", "a", SHA256, "identity")
    puts = service.count("PUT", "/a")
    assert bucket.put(stream, "probe-1", "a", SHA256, "identity") == first
    assert service.count("PUT", "/a") == puts
    other = tmp_path / "other"
    other.write_bytes(b"other")
    digest = hashlib.sha256(b"other").hexdigest()
    assert bucket.put(other, "probe-1", "a", digest, "identity").place.endswith(f"probe-1/.by-hash/{digest}")
    assert read(bucket, first.place) == CONTENT


def test_one_that_appears_between_look_and_put_is_not_overwritten(bucket, s3, stream, monkeypatch):
    look, looked = bucket._look, []

    def look_and_lose(key):
        there = look(key)
        if not looked:
            s3.put_object(Bucket="traces-here", Key=key, Body=b"somebody else's")
        looked.append(key)
        return there

    monkeypatch.setattr(bucket, "_look", look_and_lose)
    assert ".by-hash" in bucket.put(stream, "probe-1", "a", SHA256, "identity").place
    assert s3.get_object(Bucket="traces-here", Key="kit/traces/probe-1/a")["Body"].read() == b"somebody else's"


def test_a_large_one_goes_in_parts_and_is_whole(bucket, s3, large):
    file, digest = large
    stored = bucket.put(file, "probe-1", "large", digest, "identity")
    with bucket.open(stored.place) as body:
        assert content_of(body, "identity") == (file.stat().st_size, digest)
    assert uploads(s3) == []
    assert bucket.put(file, "probe-1", "large", digest, "identity") == stored


def test_a_part_that_fails_once_is_sent_again(bucket, service, large):
    file, digest = large
    service.faults["PUT", "partNumber=2"] = ["503"]
    service.faults["PUT", "partNumber=3"] = ["cut"]
    place = bucket.put(file, "probe-1", "large", digest, "identity").place
    assert [service.count("PUT", f"partNumber={part}") for part in (1, 2, 3)] == [1, 2, 2]
    with bucket.open(place) as body:
        assert content_of(body, "identity")[1] == digest


@pytest.mark.usefixtures("s3")
def test_a_part_that_is_never_answered_is_sent_again(service, large):
    file, digest = large
    service.faults["PUT", "partNumber=2"] = ["hang"]
    # With little patience: what is late on a busy machine is tried more often.
    bucket = TraceBucket("traces-here", "kit/traces", service.url, "eu-north-1", attempts=20, read_s=2)
    place = bucket.put(file, "probe-1", "large", digest, "identity").place
    assert service.count("PUT", "partNumber=2") >= 2
    with bucket.open(place) as body:
        assert content_of(body, "identity")[1] == digest


@pytest.mark.parametrize("part", ["partNumber=3", "large?uploadId"])
def test_an_upload_that_fails_is_ended_and_tried_again_later(bucket, service, s3, large, part):
    file, digest = large
    service.faults["POST" if part.startswith("large") else "PUT", part] = ["503"] * 2
    with pytest.raises(TraceStoreDown, match="probe-1/large"):
        bucket.put(file, "probe-1", "large", digest, "identity")
    assert uploads(s3) == []
    assert "Contents" not in s3.list_objects_v2(Bucket="traces-here")
    assert bucket.put(file, "probe-1", "large", digest, "identity").stored_bytes == file.stat().st_size


@pytest.mark.parametrize("what", ["small", "large"])
def test_an_answer_that_is_lost_costs_nothing(bucket, service, s3, large, stream, what):
    """The service has the object, and refuses the second try: that is looked at, and is ours."""
    service.faults["PUT" if what == "small" else "POST", "probe-1/x" if what == "small" else "x?uploadId"] = ["lost"]
    file, digest = (stream, SHA256) if what == "small" else large
    place = bucket.put(file, "probe-1", "x", digest, "identity").place
    assert read(bucket, place) == file.read_bytes()
    assert len(s3.list_objects_v2(Bucket="traces-here")["Contents"]) == 1


def test_what_a_killed_process_left_is_ended(bucket, s3, large):
    file, digest = large
    s3.create_multipart_upload(Bucket="traces-here", Key="kit/traces/probe-1/large")
    other = s3.create_multipart_upload(Bucket="traces-here", Key="kit/traces/probe-1/large-too")["UploadId"]
    bucket.put(file, "probe-1", "large", digest, "identity")
    assert [one["UploadId"] for one in uploads(s3)] == [other]


def test_a_service_that_is_away_or_lacks_the_bucket_is_down(moto, stream):
    away = TraceBucket("traces-here", "", "http://127.0.0.1:1", "eu-north-1", attempts=1)
    with pytest.raises(TraceStoreDown):
        away.put(stream, "probe-1", "a", SHA256, "identity")
    with pytest.raises(TraceStoreDown):
        away.open("s3://traces-here/a")
    lacking = TraceBucket("no-such-bucket", "", f"http://127.0.0.1:{moto}", "eu-north-1")
    with pytest.raises(TraceStoreDown, match="no-such-bucket"):
        lacking.put(stream, "probe-1", "a", SHA256, "identity")


def test_the_desk_tells_a_receipt_only_when_the_bucket_has_it(bucket, service, tmp_path):
    place = Place(tmp_path, store=bucket)
    offer, stream = offered(CONTENT, chunk=65536)
    service.faults["PUT", offer.name] = ["503"] * 2
    with pytest.raises(TraceStoreDown):
        place.received("probe-1", offer, stream)
    assert place.registry.traces.received() == []
    receipt = place.desk.settle("probe-1", offer.sha256).receipt
    assert receipt.sha256 == offer.sha256
    (row,) = place.registry.traces.received()
    assert read(bucket, row.place) == stream
    assert not place.stream("probe-1", offer).exists()
    place.registry.close()


def test_a_server_toml_with_a_bucket_stores_lists_fetches_and_verifies_there(s3, moto, tmp_path, monkeypatch, capsys):
    place = Place(tmp_path)  # before, traces went to the folder
    place.received("probe-1", *offered(b"earlier", "earlier"))
    (tmp_path / "server.toml").write_text(
        f'[traces]\nreserve_bytes = 0\n[traces.s3]\nbucket = "traces-here"\nendpoint_url = "http://127.0.0.1:{moto}"\n'
    )
    monkeypatch.setenv("TANDEM_SERVER_CONFIG", str(tmp_path / "server.toml"))
    monkeypatch.chdir(tmp_path)
    place.desk = upload_service(load(tmp_path / "server.toml"), place.registry)
    place.received("probe-1", *offered(CONTENT))
    assert main(["traces", "verify"]) == 0
    assert main(["traces", "get", "captures/run-1-a.pcap"]) == 0
    assert (tmp_path / "run-1-a.pcap").read_bytes() == CONTENT
    s3.put_object(Bucket="traces-here", Key="traces/probe-1/captures/run-1-a.pcap.gz", Body=b"damaged")
    assert main(["traces", "verify"]) == 1
    s3.delete_object(Bucket="traces-here", Key="traces/probe-1/captures/run-1-a.pcap.gz")
    assert main(["traces", "verify", "--probe", "probe-1"]) == 1
    assert "it is gone" in capsys.readouterr().out
    place.registry.close()


def test_a_probe_is_erased_with_its_earlier_versions_and_no_other(bucket, s3, stream):
    s3.put_bucket_versioning(Bucket="traces-here", VersioningConfiguration={"Status": "Enabled"})
    for probe in ("probe-1", "probe-10"):
        bucket.put(stream, probe, "a", SHA256, "identity")
    s3.delete_object(Bucket="traces-here", Key="kit/traces/probe-1/a")  # leaves the version, and a mark
    assert (bucket.held("probe-1").files, bucket.held("probe-1").bytes) == (2, len(CONTENT))
    bucket.erase("probe-1")
    assert bucket.held("probe-1").files == 0
    assert bucket.held("probe-10").bytes == len(CONTENT)
    bucket.erase("probe-10")
