"""Servers of stores, for tests: a real S3 server, and one in front of a real HDFS that loses requests and answers."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from demo.servers import free_port

BUCKET = "freshviews-test"


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """An S3 server with an empty bucket; returns the environment by which clients find it."""
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


@dataclass(frozen=True)
class Loss:
    """A request lost between a client of HDFS and a ``server``, which is a namenode or a datanode.

    ``how``: ``before`` the server gets it; after ``half`` of its data; ``after`` it was done, so the answer is lost; or
    ``short``: half of its data is written as if it were all.
    """

    operation: str
    server: str
    how: str


class Between(ThreadingHTTPServer):
    """A server between clients and an HDFS that loses each of ``losses`` once."""

    daemon_threads = True

    def __init__(self, namenode: str, certificate: Path | None) -> None:
        super().__init__(("127.0.0.1", free_port()), _Passing)
        self.web = f"127.0.0.1:{self.server_port}"
        self.scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
            self.scheme = "https"
        self.namenode = namenode
        self.losses: list[Loss] = []
        self.taking = threading.Lock()


class _Passing(BaseHTTPRequestHandler):
    server: Between

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _pass(self) -> None:
        own = f"{self.server.scheme}://{self.server.web}/datanode/"
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        to_datanode = self.path.startswith("/datanode/")
        server, path = self.server.namenode, self.path
        if to_datanode:
            server, _, path = self.path.removeprefix("/datanode/").partition("/")
            path = f"/{path}"
        how = self._loss("datanode" if to_datanode else "namenode")
        if how == "before":
            return
        connection = http.client.HTTPConnection(server, timeout=60)
        sent = data[: len(data) // 2] if how in ("half", "short") else data
        length = len(sent) if how == "short" else len(data)
        connection.request(self.command, path, sent, {"Content-Length": str(length)})
        if how == "half":
            connection.close()
            return
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if how == "after":
            return
        self.send_response(answer.status)
        location = answer.getheader("Location", "")
        if location.startswith("http"):
            self.send_header("Location", location.replace("http://", own))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_DELETE = _pass

    def _loss(self, server: str) -> str | None:
        (operation,) = parse_qs(urlsplit(self.path).query)["op"]
        with self.server.taking:
            for one in self.server.losses:
                if (one.operation, one.server) == (operation, server):
                    self.server.losses.remove(one)
                    return one.how
        return None


@contextmanager
def between(namenode: str, certificate: Path | None = None) -> Iterator[Between]:
    """A server that loses requests to an HDFS; with a certificate and its key it uses TLS."""
    with Between(namenode, certificate) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield found
        found.shutdown()


def make_certificate(path: Path) -> None:
    """A certificate of 127.0.0.1 with its key, in one file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    kept = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + kept)


@contextmanager
def answering(status: int, **body: object) -> Iterator[tuple[str, list[str]]]:
    """A server that gives every request the same answer; yields its address, and the requests that it got."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def _answer(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        do_GET = do_PUT = do_DELETE = _answer

    with ThreadingHTTPServer(("127.0.0.1", free_port()), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}", asked
        server.shutdown()
