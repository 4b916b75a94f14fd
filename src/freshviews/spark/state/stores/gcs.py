"""Keeps a checkpoint in Google Cloud Storage, at ``gs://bucket/folder``.

Credentials come from ``GOOGLE_APPLICATION_CREDENTIALS``, the login of ``gcloud`` or the role of the machine.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import google.auth
import requests
from google.api_core.exceptions import GoogleAPIError, NotFound, PreconditionFailed
from google.auth.exceptions import GoogleAuthError
from google.cloud import storage
from google.cloud.storage.retry import DEFAULT_RETRY

from freshviews.spark.state.stores.store import REQUESTS, AddressError, Data, Found, repeated


class Gcs:
    """The objects of a bucket whose names begin with a folder."""

    def __init__(self, address: str, bucket: str, folder: str) -> None:
        self.address = address
        self._folder = f"{folder.strip('/')}/"
        with self._errors(""):
            self._bucket = _client(address).bucket(bucket)

    def read(self, name: str) -> bytes:
        with self._errors(name):
            return bytes(self._blob(name).download_as_bytes(retry=_RETRY))

    def read_range(self, name: str, start: int, length: int) -> Data:
        with self._errors(name):
            return bytes(self._blob(name).download_as_bytes(start=start, end=start + length - 1, retry=_RETRY))

    def write(self, name: str, data: bytes) -> None:
        with self._errors(name):
            self._blob(name).upload_from_string(data, _TYPE, retry=_RETRY)

    def write_if_absent(self, name: str, data: bytes) -> None:
        with repeated(lambda: self.read(name), data), self._errors(name):
            self._blob(name).upload_from_string(data, _TYPE, if_generation_match=0, retry=_RETRY)

    def list(self, prefix: str) -> list[Found]:
        with self._errors(prefix):
            found = self._bucket.list_blobs(prefix=self._folder + prefix, retry=_RETRY)
            return [Found(one.name.removeprefix(self._folder), one.size, one.updated.timestamp()) for one in found]

    def delete(self, names: Collection[str]) -> None:
        # The client can send a batch of requests, but raises only one of their errors.
        with ThreadPoolExecutor(REQUESTS) as threads:
            for _ in threads.map(self._delete, names):
                pass

    def _delete(self, name: str) -> None:
        try:
            with self._errors(name):
                self._blob(name).delete(retry=_RETRY)
        except FileNotFoundError:
            pass

    def _blob(self, name: str) -> Any:
        return self._bucket.blob(self._folder + name)

    @contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        where = f"{self.address}/{name}"
        try:
            yield
        except NotFound as error:
            raise FileNotFoundError(f"{where} does not exist: {error.message}") from error
        except PreconditionFailed as error:
            raise FileExistsError(f"{where} exists") from error
        except (GoogleAPIError, GoogleAuthError, requests.RequestException) as error:
            raise OSError(f"{where}: {error}") from error


_TYPE = "application/octet-stream"
_RETRY = DEFAULT_RETRY.with_timeout(30.0)
"""Requests without an answer are repeated for this many seconds: repeating is safe, as their bytes are the same."""


def _client(address: str) -> Any:
    if os.environ.get("STORAGE_EMULATOR_HOST"):
        client = storage.Client()
    else:
        try:
            credentials, project = google.auth.default(scopes=["https://www.googleapis.com/auth/devstorage.read_write"])
        except GoogleAuthError as error:
            raise AddressError(
                f"checkpoint {address}: no Google credentials: {error}; name a file of credentials in "
                "GOOGLE_APPLICATION_CREDENTIALS, log in with gcloud auth application-default login, or give the "
                "machine a service account"
            ) from error
        # Reading and writing objects needs no project, but the client requires one.
        client = storage.Client(project=project or "none", credentials=credentials)
    connections = requests.adapters.HTTPAdapter(pool_maxsize=2 * REQUESTS)
    for scheme in ("https://", "http://"):
        client._http.mount(scheme, connections)
    return client
