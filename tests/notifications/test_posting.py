"""Test a POST to an untrusted address, against hostile receivers."""

import datetime as dt
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from swarm_web.notifications import posting
from swarm_web.notifications.posting import MAX_RESPONSE_BYTES, PostError, post, resolve
from swarm_web.notifications.targets import NotificationTarget, read_target
from tests.notifications.receiver import Receiver

Answer = Callable[[socket.socket], None]


@contextmanager
def answering(answer: Answer) -> Iterator[NotificationTarget]:
    """Accept one connection and call `answer` with it."""

    def serve() -> None:
        # Some of the tests are about a peer that closes the connection.
        try:
            connection, _ = listener.accept()
            with connection:
                answer(connection)
        except OSError:
            pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield NotificationTarget("http", "127.0.0.1", listener.getsockname()[1], "/hook")
        thread.join()


def send(target: NotificationTarget) -> int:
    return post(target, b"{}", headers={}, private=True)


def failure_of(target: NotificationTarget, *, private: bool = True) -> str:
    with pytest.raises(PostError) as problem:
        post(target, b"{}", headers={}, private=private)
    return problem.value.failure


def test_body_and_headers_are_sent(receiver: Receiver) -> None:
    target = read_target(receiver.url + "?a=1", private=True)
    assert post(target, b'{"a": 1}', headers={"webhook-id": "7"}, private=True) == 204
    got = receiver.take()
    assert (got.path, got.body, got.headers["webhook-id"]) == ("/hook?a=1", b'{"a": 1}', "7")
    assert got.headers["host"] == f"127.0.0.1:{receiver.port}"


def test_redirect_is_not_followed(receiver: Receiver) -> None:
    receiver.status, receiver.location = 307, receiver.url
    assert send(read_target(receiver.url, private=True)) == 307
    receiver.take()
    assert receiver.got.empty()


def test_proxy_variables_of_the_environment_are_ignored(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert send(read_target(receiver.url, private=True)) == 204


def test_private_address_is_not_called(receiver: Receiver) -> None:
    assert (
        failure_of(NotificationTarget("http", "127.0.0.1", receiver.port, "/"), private=False)
        == "forbidden"
    )
    assert receiver.got.empty()


def test_name_that_resolves_to_a_private_address_is_not_called(receiver: Receiver) -> None:
    assert (
        failure_of(NotificationTarget("http", "localhost", receiver.port, "/"), private=False)
        == "forbidden"
    )
    assert receiver.got.empty()


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "0177.0.0.1", "127.1"])
def test_unusual_spellings_of_loopback_are_not_called(receiver: Receiver, host: str) -> None:
    target = read_target(f"https://{host}:8443/", private=False)
    # Some resolvers cannot resolve such names, which is fine too.
    assert failure_of(target, private=False) in ("forbidden", "unresolved")


def resolve_to(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Make the resolver return these addresses, one list per call; return the requested names."""
    requested: list[str] = []
    remaining = iter(answers)
    real = socket.getaddrinfo

    def look_up(host: str, port: int, *args: int, **kwargs: int) -> object:
        if host[0].isdigit():
            return real(host, port, *args, **kwargs)
        requested.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in next(remaining)]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return requested


def test_name_with_a_private_address_among_public_ones_is_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolve_to(monkeypatch, ["93.184.216.34", "10.0.0.1"])
    assert (
        failure_of(NotificationTarget("https", "mixed.example", 443, "/"), private=False)
        == "forbidden"
    )


def test_name_is_resolved_once_so_that_dns_rebinding_has_no_effect(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested = resolve_to(monkeypatch, ["127.0.0.1"], ["169.254.169.254"])
    assert send(NotificationTarget("http", "rebinding.example", receiver.port, "/")) == 204
    assert requested == ["rebinding.example"]
    assert receiver.take().headers["host"] == f"rebinding.example:{receiver.port}"


def test_name_without_an_address_is_a_failure() -> None:
    assert failure_of(NotificationTarget("http", "nowhere.invalid", 80, "/")) == "unresolved"


def test_resolve_returns_the_distinct_addresses_of_a_public_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolve_to(monkeypatch, ["93.184.216.34", "93.184.216.34", "1.1.1.1"])
    found = resolve(NotificationTarget("https", "example.org", 443, "/"), private=False)
    assert found == ["93.184.216.34", "1.1.1.1"]


def test_closed_port_is_a_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert failure_of(NotificationTarget("http", "127.0.0.1", port, "/")) == "unreachable"


def test_hanging_receiver_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "TIMEOUT_S", 0.1)
    with answering(read_to_the_end) as target:
        assert failure_of(target) == "timeout"


def test_receiver_that_sends_slowly_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte arrives soon enough, but all of them would take very long."""
    monkeypatch.setattr(posting, "TIMEOUT_S", 0.2)

    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        for _ in range(400):
            connection.sendall(b"a")
            time.sleep(0.01)

    begun = time.monotonic()
    with answering(drip) as target:
        assert failure_of(target) == "timeout"
        assert time.monotonic() - begun < 2


def test_endless_headers_are_not_read() -> None:
    def flood(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            connection.sendall(b"X: " + b"a" * 1000 + b"\r\n")

    with answering(flood) as target:
        assert send(target) == 200


def test_large_body_is_not_read() -> None:
    read_all = threading.Event()

    def flood(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        try:
            for _ in range(1000):
                connection.sendall(bytes(1_000_000))
        except OSError:
            return
        read_all.set()

    with answering(flood) as target:
        assert send(target) == 200
    assert not read_all.is_set()


@pytest.mark.parametrize(
    "answer", [b"SSH-2.0-OpenSSH_9.6\r\n", b"", b"HTTP/1.1 abc\r\n\r\n", b"\0" * MAX_RESPONSE_BYTES]
)
def test_response_that_is_not_http_is_a_failure(answer: bytes) -> None:
    def respond(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(answer)

    with answering(respond) as target:
        assert failure_of(target) in ("garbled", "unreachable")


def test_value_with_a_newline_injects_no_header(receiver: Receiver) -> None:
    target = read_target(receiver.url, private=True)
    with pytest.raises(PostError):
        post(target, b"{}", headers={"Title": "a\r\nX-Injected: 1"}, private=True)
    assert receiver.got.empty()


# ---- TLS


@contextmanager
def answering_tls(folder: Path, *, name: str) -> Iterator[tuple[NotificationTarget, Path]]:
    """Answer one request with 204 over TLS, with a self-signed certificate for `name`."""
    certificate, key = make_certificate(folder, name=name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def answer(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            while not secure.recv(65536).endswith(b"{}"):
                pass
            secure.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with answering(answer) as target:
        yield NotificationTarget("https", "hooks.example", target.port, "/"), certificate


def make_certificate(folder: Path, *, name: str) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    names: list[x509.GeneralName] = [
        x509.DNSName(name),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    ]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    at, key_at = folder / "certificate.pem", folder / "key.pem"
    at.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_at.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return at, key_at


@pytest.fixture
def _own_trust() -> Iterator[None]:
    posting._tls.cache_clear()
    yield
    posting._tls.cache_clear()


@pytest.mark.usefixtures("_own_trust")
def test_certificate_is_checked_for_the_name_and_not_for_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_to(monkeypatch, ["127.0.0.1"])
    with answering_tls(tmp_path, name="hooks.example") as (target, certificate):
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert send(target) == 204


@pytest.mark.usefixtures("_own_trust")
def test_certificate_of_another_name_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_to(monkeypatch, ["127.0.0.1"])
    with answering_tls(tmp_path, name="other.example") as (target, certificate):
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert failure_of(target) == "untrusted"


@pytest.mark.usefixtures("_own_trust")
def test_untrusted_certificate_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, ["127.0.0.1"])
    with answering_tls(tmp_path, name="hooks.example") as (target, _):
        assert failure_of(target) == "untrusted"


def read_to_the_end(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass
