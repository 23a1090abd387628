"""The fields of protobuf messages, for files that other tools read."""

from __future__ import annotations


def message(field: int, data: bytes) -> bytes:
    """A field of text, bytes or another message."""
    return varint(field << 3 | 2) + varint(len(data)) + data


def number(field: int, value: int) -> bytes:
    """A field of a number that is not negative."""
    return varint(field << 3) + varint(value)


def varint(value: int) -> bytes:
    """A number as it stands in a message."""
    found = b""
    while value > 127:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    return found + bytes([value])
