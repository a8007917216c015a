"""Test signatures according to the Standard Webhooks specification."""

import base64

from swarm_web.notifications.webhook_signing import make_secret, sign


def test_signature_equals_that_of_the_reference_libraries() -> None:
    """The example is from the tests of those libraries."""
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


def test_length_of_the_secret_conforms_to_the_specification() -> None:
    prefix, _, key = make_secret().partition("_")
    assert prefix == "whsec"
    assert 24 <= len(base64.b64decode(key)) <= 64


def test_secrets_are_different() -> None:
    assert make_secret() != make_secret()
