"""Ed25519 (RFC 8032): private keys are bytes; public keys and signatures are lower-case hex."""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

# The y-coordinates of all points whose order divides 8, as public keys in hex without their last
# bit; two have a second form. With such a key, one signature is valid for more than one message.
_SMALL_ORDER = {
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
}


def make_key() -> bytes:
    """Return a new private key of 32 bytes."""
    return Ed25519PrivateKey.generate().private_bytes_raw()


def public_key_of(private: bytes) -> str:
    """Return the public key, 64 hex digits. Raises ValueError if `private` is not a private key."""
    return Ed25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw().hex()


def sign(private: bytes, message: bytes) -> str:
    """Return the signature of a message, 128 hex digits."""
    return Ed25519PrivateKey.from_private_bytes(private).sign(message).hex()


def is_signed(message: bytes, *, key: str, signature: str) -> bool:
    """Tell whether the key's owner signed the message; False for an invalid key or signature.

    A key of small order is invalid, although RFC 8032 does not require verifiers to refuse it.
    """
    try:
        raw = bytes.fromhex(key)
        public = Ed25519PublicKey.from_public_bytes(raw)
        public.verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return _without_sign(raw) not in _SMALL_ORDER


def _without_sign(key: bytes) -> str:
    return (key[:-1] + bytes([key[-1] & 0x7F])).hex()
