"""Digests of what is kept on disk, and of what is compared with it."""

from __future__ import annotations

# `hashlib` gives the same function, but loads OpenSSL, 4 ms of each new process.
try:
    from _blake2 import blake2b
except ImportError:  # not in this Python
    from hashlib import blake2b

__all__ = ["hasher"]


def hasher(data: bytes = b"") -> blake2b:
    """Return a hash of 32 bytes that nobody can find other content for.

    Args:
        data: What it begins with; `update` adds more.
    """
    return blake2b(data, digest_size=32)
