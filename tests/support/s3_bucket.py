"""Fixtures: S3 as moto plays it, on loopback, with a bucket ``traces-here`` that is empty in the end."""

import pytest

boto3 = pytest.importorskip("boto3", reason="pip install -r requirements/lock.txt")
moto_server = pytest.importorskip("moto.server", reason="pip install -r requirements/lock.txt")


@pytest.fixture(scope="module")
def moto():
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    yield server.get_host_and_port()[1]
    server.stop()


@pytest.fixture(autouse=True)
def _keys(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "of-the-environment")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")


@pytest.fixture
def s3(moto):
    client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{moto}")
    client.create_bucket(Bucket="traces-here", CreateBucketConfiguration={"LocationConstraint": "eu-north-1"})
    yield client
    for upload in client.list_multipart_uploads(Bucket="traces-here").get("Uploads", []):
        client.abort_multipart_upload(Bucket="traces-here", Key=upload["Key"], UploadId=upload["UploadId"])
    for one in client.list_objects_v2(Bucket="traces-here").get("Contents", []):
        client.delete_object(Bucket="traces-here", Key=one["Key"])
    client.delete_bucket(Bucket="traces-here")
