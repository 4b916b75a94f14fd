"""Keeps a checkpoint in Azure's blob storage, at ``abfss://container@account.dfs.core.windows.net/folder``.

Credentials come from ``AZURE_STORAGE_CONNECTION_STRING``, ``AZURE_STORAGE_KEY``, ``AZURE_STORAGE_SAS_TOKEN`` or
azure-identity.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from azure.core.exceptions import AzureError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import BlobServiceClient

from freshviews.spark.state.stores.store import REQUESTS, AddressError, Data, Found, repeated

_DELETED = 256
"""Maximum number of objects that one request deletes."""


class Azure:
    """The objects of a container whose names begin with a folder. ``host``: of the account, for its blobs."""

    def __init__(self, address: str, container: str, host: str, folder: str) -> None:
        self.address = address
        self._folder = f"{folder.strip('/')}/"
        self._container = _service(address, host, os.environ).get_container_client(container)

    def read(self, name: str) -> bytes:
        with self._errors(name):
            return bytes(self._container.download_blob(self._folder + name).readall())

    def read_range(self, name: str, start: int, length: int) -> Data:
        with self._errors(name):
            return bytes(self._container.download_blob(self._folder + name, offset=start, length=length).readall())

    def write(self, name: str, data: bytes) -> None:
        with self._errors(name):
            self._container.upload_blob(self._folder + name, data, overwrite=True)

    def write_if_absent(self, name: str, data: bytes) -> None:
        with repeated(lambda: self.read(name), data), self._errors(name):
            self._container.upload_blob(self._folder + name, data, overwrite=False)

    def list(self, prefix: str) -> list[Found]:
        with self._errors(prefix):
            return [
                Found(one.name.removeprefix(self._folder), one.size, one.last_modified.timestamp())
                for one in self._container.list_blobs(name_starts_with=self._folder + prefix, include=["metadata"])
                # An account with a hierarchical namespace lists its folders, too.
                if (one.metadata or {}).get("hdi_isfolder") != "true"
            ]

    def delete(self, names: Collection[str]) -> None:
        every = list(names)
        for first in range(0, len(every), _DELETED):
            some = every[first : first + _DELETED]
            with self._errors(some[0]):
                blobs = [self._folder + name for name in some]
                for name, answer in zip(
                    some, self._container.delete_blobs(*blobs, raise_on_any_failure=False), strict=True
                ):
                    if answer.status_code not in (202, 404):
                        raise OSError(f"{self.address}: {name} could not be deleted: {answer.reason}")

    @contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        where = f"{self.address}/{name}"
        try:
            yield
        except ResourceNotFoundError as error:
            raise FileNotFoundError(f"{where} does not exist: {_first_line(error)}") from error
        except ResourceExistsError as error:
            raise FileExistsError(f"{where} exists") from error
        except AzureError as error:
            raise OSError(f"{where}: {_first_line(error)}") from error


def _first_line(error: AzureError) -> str:
    return str(error.message).partition("\n")[0]


def _service(address: str, host: str, environment: Mapping[str, str]) -> Any:
    # Requests are repeated for half a minute; the client's default is one and a half.
    retries = {"retry_total": 4, "initial_backoff": 1, "increment_base": 2, "random_jitter_range": 1}
    how: dict[str, Any] = {"connection_pool_maxsize": 2 * REQUESTS, **retries}
    account = host.partition(".")[0]
    if text := environment.get("AZURE_STORAGE_CONNECTION_STRING"):
        try:
            service = BlobServiceClient.from_connection_string(text, **how)
        except ValueError as error:
            raise AddressError(f"checkpoint {address}: AZURE_STORAGE_CONNECTION_STRING is invalid: {error}") from error
        if service.account_name != account:
            raise AddressError(
                f"checkpoint {address}: AZURE_STORAGE_CONNECTION_STRING names account {service.account_name}, not "
                f"{account}"
            )
        return service
    credential: Any = environment.get("AZURE_STORAGE_KEY") or environment.get("AZURE_STORAGE_SAS_TOKEN")
    return BlobServiceClient(f"https://{host}", credential or _found_by_identity(address), **how)


def _found_by_identity(address: str) -> Any:
    from azure.identity import DefaultAzureCredential

    found = DefaultAzureCredential()
    # At once, as every request would be repeated without one. The error contains the log.
    log = logging.getLogger("azure.identity")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        found.get_token("https://storage.azure.com/.default")
    except AzureError as error:
        raise AddressError(
            f"checkpoint {address}: azure-identity finds no credentials; set AZURE_STORAGE_CONNECTION_STRING, "
            "AZURE_STORAGE_KEY or the variables of a service principal (AZURE_CLIENT_ID and so on), or log in with az"
        ) from error
    finally:
        log.setLevel(before)
    return found
