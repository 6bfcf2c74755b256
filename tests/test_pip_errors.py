"""What pip's failures mean: real pip, made to fail for real on this machine."""

import os
import shutil
import ssl
import subprocess
import sys
import threading
import venv
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from wheels import make_wheel, pinned

from course_utils.delivery import CourseError
from course_utils.delivery.environment import Environment, pip
from course_utils.delivery.pip_errors import UNKNOWN, explain

NOWHERE = "http://127.0.0.1:9/simple"  # the discard port: nothing listens


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Environment:
    """A real virtual environment with pip."""
    folder = tmp_path_factory.mktemp("pip") / "venv"
    venv.EnvBuilder(with_pip=True, symlinks=os.name != "nt").create(folder)
    return Environment(folder)


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch):
    """pip without this machine's settings, and without its patience."""
    for name in list(os.environ):
        if name.startswith("PIP_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_RETRIES", "0")


class Refuse(BaseHTTPRequestHandler):
    """A proxy that wants a password."""

    def do_CONNECT(self):
        self.send_response(407)
        self.send_header("Proxy-Authenticate", "Basic")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_CONNECT

    def log_message(self, *args):
        pass


@contextmanager
def served(handler=Refuse, wrap=lambda plain: plain):
    """A server on loopback. Yields its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.socket = wrap(server.socket)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def failure(environment: Environment, *arguments: str | Path) -> str:
    """The sentence that follows when pip fails to install."""
    with pytest.raises(CourseError) as caught:
        pip(environment, "install", "--target", environment.folder / "target", *arguments)
    return str(caught.value)


def test_no_network(environment):
    assert failure(environment, "six", "--index-url", NOWHERE).startswith("No network")


def test_a_name_that_nobody_knows(environment):
    assert failure(environment, "six", "--index-url", "https://no-such-host.invalid").startswith("No network")


def test_a_proxy_that_wants_a_password(environment):
    with served() as port:
        said = failure(environment, "six", "--proxy", f"http://127.0.0.1:{port}")
    assert said.startswith("The proxy refuses")


def test_a_proxy_that_is_not_there(environment):
    assert failure(environment, "six", "--proxy", "http://127.0.0.1:9").startswith("The proxy refuses")


@pytest.mark.platform
@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl to make a certificate with")
def test_a_certificate_that_nobody_signed(environment, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    name = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "1"]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate]
    subprocess.run([*make, *name], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with served(wrap=lambda plain: context.wrap_socket(plain, server_side=True)) as port:
        said = failure(environment, "six", "--index-url", f"https://127.0.0.1:{port}/simple")
    assert said.startswith("The server's certificate can't be verified")


def test_other_content_than_expected(environment, tmp_path):
    wheel = make_wheel(tmp_path, "parcel", "1.0", {"parcel.py": b"content = 1\n"})
    (tmp_path / "list.txt").write_text(pinned(wheel))
    make_wheel(tmp_path, "parcel", "1.0", {"parcel.py": b"content = 2\n"})
    offline = ["--no-index", "--find-links", tmp_path, "--require-hashes", "-r", tmp_path / "list.txt"]
    assert failure(environment, *offline).startswith("A package arrived with other content")


def test_no_build_for_this_computer(environment, tmp_path):
    wheel = make_wheel(tmp_path, "parcel", "1.0", {"parcel.py": b""})
    wheel.rename(tmp_path / "parcel-1.0-py3-none-other_machine.whl")
    said = failure(environment, "--no-index", "--find-links", tmp_path, "parcel==1.0")
    assert said.startswith("parcel==1.0 can't be had for this computer")
    assert "Python {}.{}:".format(*sys.version_info) in said


def test_a_constraint_in_the_users_settings(environment, tmp_path, monkeypatch):
    make_wheel(tmp_path, "parcel", "1.0", {"parcel.py": b""})
    (tmp_path / "constraints.txt").write_text("parcel<1\n")
    monkeypatch.setenv("PIP_CONSTRAINT", str(tmp_path / "constraints.txt"))
    said = failure(environment, "--no-index", "--find-links", tmp_path, "parcel==1.0")
    assert "conflict with a constraint" in said


def test_a_failure_that_we_know_nothing_about(environment):
    assert failure(environment, "--no-such-option") == UNKNOWN


def test_pip_says_what_it_does_on_the_screen(environment, tmp_path, capfd):
    make_wheel(tmp_path, "parcel", "1.0", {"parcel.py": b""})
    pip(environment, "install", "--no-index", "--find-links", tmp_path, "parcel==1.0")
    assert "Successfully installed parcel-1.0" in capfd.readouterr().out


@pytest.mark.platform
@pytest.mark.skipif(os.name == "nt", reason="Windows sets no bound on the size of files")
def test_no_room_for_a_file(environment, tmp_path):
    import resource

    make_wheel(tmp_path, "parcel", "1.0", {"parcel.bin": bytes(3_000_000)})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
    try:
        said = failure(environment, "--no-index", "--find-links", tmp_path, "parcel==1.0")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert said.startswith("The disk is full")


def test_a_disk_with_little_left_is_full_whatever_the_log_says():
    assert explain("", free=1_000).startswith("The disk is full")
    assert explain("", free=10**9) == UNKNOWN


def test_the_first_cause_is_told():
    log = "ProxyError('Cannot connect to proxy.', NewConnectionError('[Errno 111]'))\nNo matching distribution found"
    assert explain(log).startswith("The proxy")
