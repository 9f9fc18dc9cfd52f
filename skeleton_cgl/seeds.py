"""Seeds that depend on what they are for, and on nothing else: not on the clock, the process or what ran before."""

import hashlib


def seed_of(*key: str | int | tuple[object, ...]) -> int:
    """Return a number from 0 to 2⁶³−1 decided by `key` alone; different keys give independent seeds."""
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:8], "big") >> 1
