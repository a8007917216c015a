"""Ed25519 (RFC 8032): private keys are bytes; public keys and signatures are lower-case hex."""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


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
    """Tell whether the key's owner signed the message; False for an invalid key or signature."""
    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        public.verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True
