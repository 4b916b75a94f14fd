"""Servers of object stores, for tests: real processes on this machine."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from demo.servers import free_port

BUCKET = "freshviews-test"


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """An S3 server with an empty bucket; the environment by which clients find it."""
    import boto3

    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    given = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            until = time.monotonic() + 60
            while True:
                try:
                    urllib.request.urlopen(f"{given['AWS_ENDPOINT_URL']}/moto-api/", timeout=5)
                    break
                except OSError:
                    assert time.monotonic() < until and server.poll() is None, "the server does not start"
                    time.sleep(0.1)
            boto3.client(
                "s3",
                endpoint_url=given["AWS_ENDPOINT_URL"],
                aws_access_key_id="test",
                aws_secret_access_key="test",
                region_name="us-east-1",
            ).create_bucket(Bucket=BUCKET)
            yield given
        finally:
            server.terminate()
