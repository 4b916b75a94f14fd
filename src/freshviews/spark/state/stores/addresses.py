"""Finds the store at the address of a checkpoint, by the scheme of the address, such as ``s3``."""

from __future__ import annotations

import importlib.util
import os
import re
from functools import cache
from pathlib import Path

from freshviews.spark.state.stores.cached import Cached, cache_of
from freshviews.spark.state.stores.folder import Folder
from freshviews.spark.state.stores.store import AddressError, Objects, Store

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_SERVED = (
    "a path or file:/path (a folder that all workers see under that path), s3://bucket/folder (or s3a:), "
    "gs://bucket/folder, abfss://container@account.dfs.core.windows.net/folder, and hdfs://namenode/folder (or "
    "webhdfs:, swebhdfs:)"
)


def store_of(address: str | os.PathLike[str]) -> Store:
    """The store at an address, one object per process. Raises AddressError if nothing serves its scheme.

    An address with a scheme never becomes a folder of that name.
    """
    text = os.fspath(address)
    if not text or "\0" in text:
        raise AddressError(f"checkpoint {text!r}: the address is empty or has a NUL character; accepted: {_SERVED}")
    return _store_of(text.rstrip("/") if _SCHEME.match(text) else str(Path(text).absolute()))


@cache
def _store_of(address: str) -> Store:
    scheme = _SCHEME.match(address)
    if scheme is None:
        return Folder(Path(address))
    rest = address[scheme.end() :]
    kind = scheme[1].lower()
    if kind == "file":
        path = re.sub(r"^//(localhost)?(?=/)", "", rest)
        if path.startswith("//"):
            raise AddressError(f"checkpoint {address}: a file address cannot name a host; file:/path is accepted")
        return Folder(Path(path).absolute())
    if kind in ("s3", "s3a"):
        return Cached(_s3(address, rest), cache_of(address))
    if kind == "gs":
        return Cached(_gcs(address, rest), cache_of(address))
    if kind in ("abfs", "abfss"):
        return Cached(_azure(address, rest), cache_of(address))
    if kind in ("hdfs", "webhdfs", "swebhdfs"):
        return Cached(_hdfs(address, kind, rest), cache_of(address))
    raise AddressError(
        f"checkpoint {address}: addresses that begin with {scheme[1]}: are not supported; accepted: {_SERVED}"
    )


def _s3(address: str, rest: str) -> Objects:
    bucket, folder = _in_bucket(address, rest, "s3://bucket/folder")
    _check_installed(address, "boto3", "s3")
    from freshviews.spark.state.stores.s3 import S3

    return S3(address, bucket, folder)


def _gcs(address: str, rest: str) -> Objects:
    bucket, folder = _in_bucket(address, rest, "gs://bucket/folder")
    _check_installed(address, "google.cloud.storage", "gcs")
    from freshviews.spark.state.stores.gcs import Gcs

    return Gcs(address, bucket, folder)


def _azure(address: str, rest: str) -> Objects:
    form = "abfss://container@account.dfs.core.windows.net/folder"
    bucket, folder = _in_bucket(address, rest, form)
    container, _, host = bucket.partition("@")
    if not container or not host:
        raise AddressError(f"checkpoint {address}: {form} is accepted")
    _check_installed(address, "azure.storage.blob", "azure")
    from freshviews.spark.state.stores.azure import Azure

    # What Hadoop calls by the name of the file system is served as blobs, too, at a name of its own.
    return Azure(address, container, host.replace(".dfs.", ".blob.", 1), folder)


def _in_bucket(address: str, rest: str, form: str) -> tuple[str, str]:
    bucket, _, folder = rest.removeprefix("//").partition("/")
    if not rest.startswith("//") or not bucket or not folder.strip("/"):
        raise AddressError(f"checkpoint {address}: {form} is accepted")
    return bucket, folder


def _check_installed(address: str, module: str, extra: str) -> None:
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        found = None
    if found is None:
        package = module.replace(".", "-")
        raise AddressError(
            f"checkpoint {address} needs {package}: pip install 'freshviews[{extra}]', also for workers"
        )


def _hdfs(address: str, kind: str, rest: str) -> Objects:
    from freshviews.spark.state.stores.hdfs import WEB, Hdfs, web_addresses

    host, _, folder = rest.removeprefix("//").partition("/")
    try:
        web = list(web_addresses(kind, host, os.environ))
    except ValueError as error:
        raise AddressError(f"checkpoint {address}: {error}; http://host:port is accepted in {WEB}") from error
    if not rest.startswith("//") or not web or not folder.strip("/"):
        raise AddressError(
            f"checkpoint {address}: {kind}://namenode/folder is accepted, or hdfs:///folder if {WEB} is set"
        )
    return Hdfs(address, web, folder)
