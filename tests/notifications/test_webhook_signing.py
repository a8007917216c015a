"""Signatures as the Standard Webhooks specification and its libraries make them."""

import base64

from swarm_web.notifications.webhook_signing import make_secret, sign


def test_a_signature_is_that_of_the_reference_libraries() -> None:
    """The example of their tests."""
    headers = sign(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1614265330,
        body=b'{"test": 2432232314}',
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_a_secret_has_as_many_bytes_as_the_specification_asks_for() -> None:
    prefix, _, key = make_secret().partition("_")
    assert prefix == "whsec"
    assert 24 <= len(base64.b64decode(key)) <= 64


def test_no_two_secrets_are_alike() -> None:
    assert make_secret() != make_secret()
