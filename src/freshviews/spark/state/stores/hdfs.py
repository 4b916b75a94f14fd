"""Keeps a checkpoint in HDFS, at ``hdfs://namenode/folder`` or ``webhdfs://namenode:port/folder``.

Requests go to WebHDFS, the web interface of HDFS.
"""

from __future__ import annotations

import errno
import getpass
import http.client
import os
import re
import socket
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from freshviews.records import dataclass
from freshviews.spark.state.stores.store import AddressError, Data, Found, requests
from freshviews.store.files import json_of

WEB = "FRESHVIEWS_WEBHDFS"
"""Environment variable with the web addresses of the namenodes of ``hdfs:`` addresses, separated by commas."""
PORTS = {"http": 9870, "https": 9871}
"""The default port of a namenode's web interface."""
ASIDE = "aside"
"""Folder of files that are being written. Files of writers that died are deleted like others that no manifest names."""
PATIENCE = 30.0
"""Seconds after which a request without an answer is not repeated."""
_TIMEOUT = 60.0
_LONGEST_PAUSE = 2.0
_HEADERS = {"Content-Type": "application/octet-stream"}
_SYNCED = "create,sync_block"
"""The datanodes sync the file to their disks before it counts as closed."""
_AGAIN = (
    *("StandbyException", "RetriableException", "SafeModeException", "IOException"),
    # Of a datanode whose namenode has stopped.
    *("EOFException", "ConnectException", "SocketException", "SocketTimeoutException", "NoRouteToHostException"),
)
"""Answers of a namenode that may change soon; IOException if it finds no datanode."""
_QUOTA = ("DSQuotaExceededException", "NSQuotaExceededException", "QuotaByStorageTypeExceededException")

_T = TypeVar("_T")


class _Again(OSError):
    """A request got no answer, so its outcome is unknown, or the server asked to retry it."""


@dataclass(frozen=True)
class _Answer:
    """``is_measured``: the answer says how long it is, so one that is cut off is an error."""

    status: int
    location: str | None
    is_measured: bool
    body: bytes


class Hdfs:
    """The files below a folder. ``web``: the addresses of the namenode's web interface, and of standby namenodes.

    Python workers have no Java, so requests go to the namenode and the datanodes over HTTP. An object is first written
    to a file in ``aside/``, whose name is used once. When datanodes have synced and closed the file, it is renamed. A
    rename is atomic. If an object of that name exists, the rename replaces it (``write``), or fails
    (``write_if_absent``).
    """

    def __init__(self, address: str, web: Collection[str], folder: str) -> None:
        self.address = address
        self._folder = f"/{folder.strip('/')}"
        self._web = _Web(tuple(web))

    def read(self, name: str) -> bytes:
        return self._web.read(self._path(name))

    def read_range(self, name: str, start: int, length: int) -> Data:
        return self._web.read(self._path(name), offset=start, length=length)

    def write(self, name: str, data: bytes) -> None:
        self._put(name, data, "OVERWRITE")

    def write_if_absent(self, name: str, data: bytes) -> None:
        self._put(name, data, "NONE")

    def list(self, prefix: str) -> list[Found]:
        folders, found = [prefix.rpartition("/")[0]], []
        while folders:
            deeper = []
            for folder, entries in zip(folders, requests().map(self._entries, folders), strict=True):
                for entry in entries:
                    name = f"{folder}/{entry['pathSuffix']}".lstrip("/")
                    if entry["type"] == "DIRECTORY":
                        deeper.append(name)
                    elif name.startswith(prefix):
                        found.append(Found(name, entry["length"], entry["modificationTime"] / 1000))
            folders = [folder for folder in deeper if folder.startswith(prefix)]
        return found

    def delete(self, names: Collection[str]) -> None:
        """Delete files, and the folders below the first level that this leaves empty."""
        for _ in requests().map(self._delete, names):
            pass
        for folder in {name.rpartition("/")[0] for name in names}:
            if "/" in folder:
                with suppress(OSError):  # not empty
                    self._web.ask_once("DELETE", self._path(folder), {"op": "DELETE"})

    def _delete(self, name: str) -> None:
        self._web.ask("DELETE", self._path(name), "DELETE")

    def _entries(self, folder: str) -> Sequence[Any]:
        try:
            found = self._web.ask("GET", self._path(folder), "LISTSTATUS")
        except FileNotFoundError:
            return []
        entries: Sequence[Any] = json_of(found)["FileStatuses"]["FileStatus"]
        return entries

    def _put(self, name: str, data: bytes, option: str) -> None:
        aside = self._web.write(lambda: self._path(f"{ASIDE}/{uuid.uuid4().hex}"), data)
        try:
            self._rename(aside, name, data, option)
        except OSError:
            # A rename that is still under way then finds no file.
            with suppress(OSError):
                self._web.ask_once("DELETE", aside, {"op": "DELETE"})
            raise

    def _rename(self, aside: str, name: str, data: bytes, option: str) -> None:
        path = self._path(name)
        for has_parent in (False, True):
            try:
                done = self._web.ask("PUT", aside, "RENAME", destination=path, renameoptions=option)
                break
            except (FileNotFoundError, FileExistsError) as error:
                if self._was_renamed(aside, name, data):
                    return
                if has_parent or isinstance(error, FileExistsError):
                    raise
                self._web.ask("PUT", path.rpartition("/")[0], "MKDIRS")
        if b"false" in done:
            raise OSError(f"{path}: {self._web} does not support the options of a rename; use a namenode, not HttpFS")

    def _was_renamed(self, aside: str, name: str, data: bytes) -> bool:
        """True if an earlier request, whose answer was lost, has done the rename. No other process knows the name of
        the file, so it is gone only then."""
        with suppress(FileNotFoundError):
            self._web.ask("GET", aside, "GETFILESTATUS")
            return False
        with suppress(FileNotFoundError):
            return self.read(name) == data
        return False

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}".rstrip("/")


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        raise AddressError(
            "HDFS needs a user name, but this process has none; set the environment variable HADOOP_USER_NAME"
        ) from None


class _Web:
    """Requests to namenodes, and to the datanodes that they name."""

    def __init__(self, namenodes: tuple[str, ...]) -> None:
        self._namenodes = namenodes
        self._active = 0
        self._user = os.environ.get("HADOOP_USER_NAME") or os.environ.get("SPARK_USER") or _login()

    def __str__(self) -> str:
        return ",".join(self._namenodes)

    def ask(self, method: str, path: str, operation: str, **parameters: str) -> bytes:
        """The answer of the namenode. The request may be made several times. Raises OSError."""
        return _until_answered(lambda: _check(self.ask_once(method, path, {"op": operation, **parameters}), str(self)))

    def read(self, path: str, **parameters: int) -> bytes:
        """The bytes of a file. Raises OSError."""
        attempt = _Attempts(self, "GET", {"op": "OPEN", **parameters})
        return _until_answered(lambda: attempt(path, None))

    def write(self, fresh: Callable[[], str], data: bytes) -> str:
        """Write a file under a fresh path, which is returned. Raises OSError.

        Each attempt has a path of its own: one without an answer may still be under way, and would truncate the file.
        The namenode reports the length of the file: an old datanode also confirms a file that it could not close.
        """
        attempt = _Attempts(self, "PUT", {"op": "CREATE", "createflag": _SYNCED})

        def write() -> str:
            path = fresh()
            attempt(path, data)
            status = _check(self.ask_once("GET", path, {"op": "GETFILESTATUS"}), str(self))
            length = json_of(status)["FileStatus"]["length"]
            if length != len(data):
                raise _Again(f"{path}: {self} has {length} of the {len(data)} bytes that were written")
            return path

        return _until_answered(write)

    def ask_once(self, method: str, path: str, parameters: Mapping[str, object]) -> _Answer:
        """One request, to the namenode that answered last, else to the others. Raises OSError."""
        query = urlencode({**parameters, "user.name": self._user})
        for place in range(len(self._namenodes)):
            number = (self._active + place) % len(self._namenodes)
            web = self._namenodes[number]
            try:
                answer = _request(method, f"{web}/webhdfs/v1{quote(path)}?{query}", path, None)
            except _Again as error:
                last = error
            else:
                self._active = number
                return answer
        raise last


class _Attempts:
    """Attempts of a request that a datanode answers; one that did not answer is skipped if there is another."""

    def __init__(self, web: _Web, method: str, parameters: Mapping[str, object]) -> None:
        self._web = web
        self._method = method
        self._parameters = parameters
        self._failed: dict[str, _Again] = {}

    def __call__(self, path: str, data: bytes | None) -> bytes:
        without = {"excludedatanodes": ",".join(self._failed)} if self._failed else {}
        try:
            answer = self._web.ask_once(self._method, path, {**self._parameters, **without})
        except _Again as error:
            said = next(iter(self._failed.values()), error)
            self._failed.clear()
            raise said from error
        if answer.status != 307 or answer.location is None:
            raise OSError(f"{path}: {self._web} names no datanode; use a namenode with WebHDFS")
        server = urlsplit(answer.location).netloc
        try:
            found = _request(self._method, answer.location, path, data)
            if data is None and not found.is_measured:
                raise _Again(f"{path}: {server} does not report the length of the file")
            return _check(found, server)
        except _Again as error:
            self._failed[_ip(str(urlsplit(answer.location).hostname))] = error
            raise


def _ip(host: str) -> str:
    """The identity of a datanode at the namenode."""
    with suppress(OSError):
        return socket.gethostbyname(host)
    return host


def _until_answered(attempt: Callable[[], _T]) -> _T:
    """The result of an attempt, which is repeated while it gets no answer, at least once."""
    began = time.monotonic()
    for number in count():
        try:
            return attempt()
        except _Again as error:
            if number and time.monotonic() > began + PATIENCE:
                raise OSError(str(error)) from error
        time.sleep(min(_LONGEST_PAUSE, 0.1 * 2**number))
    raise AssertionError


def _request(method: str, url: str, path: str, data: bytes | None) -> _Answer:
    """One request to one server. Raises OSError, which is _Again if it may be answered otherwise later."""
    parts = urlsplit(url)
    server = f"{parts.scheme}://{parts.netloc}"
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.netloc, timeout=_TIMEOUT)
    try:
        connection.connect()
        with suppress(BrokenPipeError, ConnectionResetError):  # the answer may have the reason
            connection.request(method, f"{parts.path}?{parts.query}", data, _HEADERS)
        response = connection.getresponse()
        is_measured = response.length is not None or response.chunked
        answer = _Answer(response.status, response.getheader("Location"), is_measured, response.read())
    except (OSError, http.client.HTTPException) as error:
        raise _Again(
            f"{server} does not answer ({error or type(error).__name__}); start HDFS, and let every machine reach "
            "the namenode and the datanodes. If the namenode has another web address, write "
            f"webhdfs://host:port/folder, or for hdfs: addresses set the environment variable {WEB}"
        ) from error
    finally:
        connection.close()
    if answer.status >= 400:
        raise _error(answer, server, path)
    return answer


def _check(answer: _Answer, server: str) -> bytes:
    """The answer to a completed request. Raises OSError if it was not completed, such as for a redirect to a login."""
    if answer.status >= 300:
        raise _error(answer, server, "")
    return answer.body


def _error(answer: _Answer, server: str, path: str) -> OSError:
    """The error that a server answered."""
    if answer.status == 401:
        return PermissionError(
            f"{server} asks for a login, such as Kerberos, and a checkpoint can only send a user name "
            "(HADOOP_USER_NAME); use an HDFS without Kerberos, a mounted folder, or s3://bucket/folder"
        )
    try:
        remote = json_of(answer.body)["RemoteException"]
        kind, message = str(remote["exception"]), str(remote["message"]).partition("\n")[0]
    except (ValueError, KeyError, TypeError):
        said = answer.body[:200].decode(errors="replace").partition("\n")[0]
        text = f"{server} answers {answer.status} without WebHDFS: {said}; name the web address of a namenode"
        return _Again(text) if answer.status >= 500 else OSError(text)
    text = f"{path} at {server}: {kind}: {message}"
    if kind == "FileNotFoundException":
        return FileNotFoundError(text)
    if kind == "FileAlreadyExistsException":
        return FileExistsError(text)
    if kind in _QUOTA:
        return OSError(errno.EDQUOT, text)
    if kind in ("AccessControlException", "SecurityException"):
        return PermissionError(text)
    return _Again(text) if kind in _AGAIN else OSError(text)


def web_addresses(scheme: str, host: str, environment: Mapping[str, str]) -> Iterator[str]:
    """The web addresses of the namenodes of an address ``hdfs:``, ``webhdfs:`` or ``swebhdfs:``; ``host``: with or
    without a port. Raises ValueError."""
    given = environment.get(WEB, "") if scheme == "hdfs" else ""
    if given:
        for one in given.split(","):
            parts = urlsplit(one.strip() if "//" in one else f"http://{one.strip()}")
            yield _with_port(parts.scheme, parts.netloc)
    elif host:
        # The port in an hdfs: address is not of the web interface.
        own = re.sub(r":\d+$", "", host) if scheme == "hdfs" else host
        yield _with_port("https" if scheme == "swebhdfs" else "http", own)


def _with_port(scheme: str, host: str) -> str:
    if scheme not in PORTS or not urlsplit(f"//{host}").hostname:
        raise ValueError(f"{scheme}://{host} is not a web address of a namenode")
    return f"{scheme}://{host}" if urlsplit(f"//{host}").port else f"{scheme}://{host}:{PORTS[scheme]}"
