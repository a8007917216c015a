"""One POST to a stranger's address, against receivers that a stranger would run."""

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
    """Accept one connection and let `answer` do with it what it likes."""

    def serve() -> None:
        # A peer that hangs up is what some of the tests are about.
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


def test_body_and_headers_arrive(receiver: Receiver) -> None:
    target = read_target(receiver.url + "?a=1", private=True)
    assert post(target, b'{"a": 1}', headers={"webhook-id": "7"}, private=True) == 204
    got = receiver.take()
    assert (got.path, got.body, got.headers["webhook-id"]) == ("/hook?a=1", b'{"a": 1}', "7")
    assert got.headers["host"] == f"127.0.0.1:{receiver.port}"


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    receiver.status, receiver.location = 307, receiver.url
    assert send(read_target(receiver.url, private=True)) == 307
    receiver.take()
    assert receiver.got.empty()


def test_proxies_of_the_environment_are_not_asked(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert send(read_target(receiver.url, private=True)) == 204


def test_a_private_address_is_not_called(receiver: Receiver) -> None:
    assert (
        failure_of(NotificationTarget("http", "127.0.0.1", receiver.port, "/"), private=False)
        == "forbidden"
    )
    assert receiver.got.empty()


def test_a_name_that_leads_to_a_private_address_is_not_called(receiver: Receiver) -> None:
    assert (
        failure_of(NotificationTarget("http", "localhost", receiver.port, "/"), private=False)
        == "forbidden"
    )
    assert receiver.got.empty()


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "0177.0.0.1", "127.1"])
def test_odd_spellings_of_loopback_are_not_called(receiver: Receiver, host: str) -> None:
    target = read_target(f"https://{host}:8443/", private=False)
    # Some resolvers know no such name, which is as well.
    assert failure_of(target, private=False) in ("forbidden", "unresolved")


def answer_with(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Let the system's resolver give these addresses, call after call; return the names asked."""
    asked: list[str] = []
    left = iter(answers)
    real = socket.getaddrinfo

    def look_up(host: str, port: int, *args: int, **kwargs: int) -> object:
        if host[0].isdigit():
            return real(host, port, *args, **kwargs)
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in next(left)]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return asked


def test_one_private_address_among_public_ones_is_enough_to_refuse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer_with(monkeypatch, ["93.184.216.34", "10.0.0.1"])
    assert (
        failure_of(NotificationTarget("https", "mixed.example", 443, "/"), private=False)
        == "forbidden"
    )


def test_a_name_is_asked_for_once_so_that_a_second_answer_changes_nothing(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answer_with(monkeypatch, ["127.0.0.1"], ["169.254.169.254"])
    assert send(NotificationTarget("http", "rebinding.example", receiver.port, "/")) == 204
    assert asked == ["rebinding.example"]
    assert receiver.take().headers["host"] == f"rebinding.example:{receiver.port}"


def test_a_name_without_an_address_fails() -> None:
    assert failure_of(NotificationTarget("http", "nowhere.invalid", 80, "/")) == "unresolved"


def test_a_public_name_gives_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, ["93.184.216.34", "93.184.216.34", "1.1.1.1"])
    found = resolve(NotificationTarget("https", "example.org", 443, "/"), private=False)
    assert found == ["93.184.216.34", "1.1.1.1"]


def test_a_closed_port_fails() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert failure_of(NotificationTarget("http", "127.0.0.1", port, "/")) == "unreachable"


def test_a_receiver_that_hangs_is_left_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "TIMEOUT_S", 0.1)
    with answering(read_to_the_end) as target:
        assert failure_of(target) == "timeout"


def test_a_receiver_that_drips_is_left_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes soon enough; all of them would take for ever."""
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


def test_a_large_body_is_not_read() -> None:
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
def test_what_is_not_http_fails(answer: bytes) -> None:
    def say(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(answer)

    with answering(say) as target:
        assert failure_of(target) in ("garbled", "unreachable")


def test_a_header_cannot_be_injected_by_a_value(receiver: Receiver) -> None:
    target = read_target(receiver.url, private=True)
    with pytest.raises(PostError):
        post(target, b"{}", headers={"Title": "a\r\nX-Injected: 1"}, private=True)
    assert receiver.got.empty()


# ---- TLS


@contextmanager
def answering_tls(folder: Path, *, name: str) -> Iterator[tuple[NotificationTarget, Path]]:
    """Answer one request with 204 behind TLS, with a certificate of its own for a name."""
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
def test_a_certificate_is_checked_for_the_name_and_not_for_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, ["127.0.0.1"])
    with answering_tls(tmp_path, name="hooks.example") as (target, certificate):
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert send(target) == 204


@pytest.mark.usefixtures("_own_trust")
def test_the_certificate_of_another_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, ["127.0.0.1"])
    with answering_tls(tmp_path, name="other.example") as (target, certificate):
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert failure_of(target) == "untrusted"


@pytest.mark.usefixtures("_own_trust")
def test_a_certificate_that_nobody_signed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, ["127.0.0.1"])
    with answering_tls(tmp_path, name="hooks.example") as (target, _):
        assert failure_of(target) == "untrusted"


def read_to_the_end(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass
