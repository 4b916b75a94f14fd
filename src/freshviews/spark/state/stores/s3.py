"""Keeps a checkpoint in S3, or in a server that speaks S3's protocol, at ``s3://bucket/folder``.

Credentials and region come from environment variables, AWS's files or the role of the machine. ``AWS_ENDPOINT_URL``
names another server.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from freshviews.spark.state.stores.store import REQUESTS, Data, Found, repeated

_ABSENT = ("NoSuchKey", "404")
_THERE = ("PreconditionFailed", "412")
_AT_ONCE = ("ConditionalRequestConflict", "409")
_DELETED = 1000
"""Maximum number of keys that one request deletes."""
_TRIES = 5


class S3:
    """The objects of a bucket whose keys begin with a folder."""

    def __init__(self, address: str, bucket: str, folder: str) -> None:
        self.address = address
        self._bucket = bucket
        self._folder = f"{folder.strip('/')}/" if folder.strip("/") else ""
        self._client = _client()

    def read(self, name: str) -> bytes:
        with self._errors(name):
            return bytes(self._client.get_object(**self._at(name))["Body"].read())

    def read_range(self, name: str, start: int, length: int) -> Data:
        with self._errors(name):
            found = self._client.get_object(**self._at(name), Range=f"bytes={start}-{start + length - 1}")
            return bytes(found["Body"].read())

    def write(self, name: str, data: bytes) -> None:
        with self._errors(name):
            self._client.put_object(**self._at(name), Body=data)

    def write_if_absent(self, name: str, data: bytes) -> None:
        for _ in range(_TRIES):
            try:
                with repeated(lambda: self.read(name), data), self._errors(name):
                    self._client.put_object(**self._at(name), Body=data, IfNoneMatch="*")
                return
            except BlockingIOError:
                continue
        raise OSError(f"{self.address}/{name}: another process writes the object at the same time")

    def list(self, prefix: str) -> list[Found]:
        pages = self._client.get_paginator("list_objects_v2")
        with self._errors(prefix):
            return [
                Found(one["Key"].removeprefix(self._folder), one["Size"], one["LastModified"].timestamp())
                for page in pages.paginate(Bucket=self._bucket, Prefix=self._folder + prefix)
                for one in page.get("Contents", [])
            ]

    def delete(self, names: Collection[str]) -> None:
        every = list(names)
        for first in range(0, len(every), _DELETED):
            some = every[first : first + _DELETED]
            keys = [{"Key": self._folder + name} for name in some]
            with self._errors(some[0]):
                done = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": keys, "Quiet": True})
                refused = next(iter(done.get("Errors", [])), None)
                if refused is not None:
                    raise OSError(f"{self.address}: {refused.get('Key')} is not deleted: {refused.get('Message')}")

    def _at(self, name: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": self._folder + name}

    @contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            where = f"{self.address}/{name}"
            if code in _ABSENT:
                raise FileNotFoundError(f"{where} does not exist") from error
            if code in _THERE:
                raise FileExistsError(f"{where} exists") from error
            if code in _AT_ONCE:
                raise BlockingIOError(f"{where} is being written") from error
            raise OSError(f"{where}: {code}: {error.response.get('Error', {}).get('Message', error)}") from error
        except BotoCoreError as error:
            raise OSError(f"{self.address}/{name}: {error}") from error


def _client() -> Any:
    # Servers other than Amazon's support only the checksums of S3's first years.
    return boto3.session.Session().client(
        "s3",
        config=Config(
            max_pool_connections=2 * REQUESTS,
            retries={"mode": "standard", "max_attempts": _TRIES},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )
