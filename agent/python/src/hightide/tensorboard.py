"""Runs in TensorBoard: figures and curves as scalars, the run's id as text.

    hightide.tensorboard.log("logs/hightide")      a folder of its own, or
    hightide.tensorboard.log(writer)               a SummaryWriter, of torch.utils.tensorboard or tensorboardX

The event file of a folder is written here, so nothing needs to be installed where the training runs
(docs/decisions/tensorboard.md).
"""

from __future__ import annotations

import os
import socket
import struct
from time import time
from typing import Any, BinaryIO, Dict, List, Optional, Union

from . import _trackers


def log(to: Any = "runs/hightide", run: str = "") -> str:
    """Log a run into a folder of event files, or with a writer.

    Args:
        to: a folder, best one of its own: TensorBoard reads one file of a folder at a time. Or a SummaryWriter.
        run: as hightide.report takes it; "": the one that records this program, or else its latest.
    Returns:
        The id of our run.
    """
    if hasattr(to, "add_scalar"):
        return _trackers.send(Run(to, str(getattr(to, "log_dir", None) or to.logdir)), run)
    with EventFile(to) as writer:
        return _trackers.send(Run(writer, os.fspath(to)), run)


class Run(_trackers.Tracker):
    """A folder of event files, which is what TensorBoard calls a run."""

    name = "tensorboard"

    def __init__(self, writer: Any, folder: str) -> None:
        self._writer, self._folder = writer, os.path.abspath(folder)

    def id(self) -> str:
        """The folder."""
        return self._folder

    def link(self, runs: str) -> None:
        """As text."""
        self._writer.add_text(_trackers.OURS, runs)

    def figures(self, figures: Dict[str, int]) -> None:
        """As scalars of one value."""
        for name, value in figures.items():
            self._writer.add_scalar(name, value, 0)

    def curves(self, curves: List[_trackers.Curve], start_ns: int) -> None:
        """As scalars with the times at which they were read; the step is in milliseconds since the run began."""
        for curve in curves:
            for at, value in curve.points:
                self._writer.add_scalar(curve.name, value, at // 1_000_000, (start_ns + at) / 1e9)

    def page(self, path: str) -> None:
        """TensorBoard shows no pages."""


class EventFile:
    """A file of TensorBoard's events: records with checksums, each a protocol buffer.

    Source: tensorflow/core/util/event.proto, summary.proto and tensor.proto; tensorflow/core/lib/io/record_writer.
    """

    def __init__(self, folder: Union[str, os.PathLike[str]]) -> None:
        os.makedirs(folder, exist_ok=True)
        name = f"events.out.tfevents.{int(time()):010d}.{socket.gethostname()}.{os.getpid()}.hightide"
        self._file: BinaryIO = open(os.path.join(folder, name), "xb")  # noqa: SIM115
        self._record(_double(1, time()) + _text(3, "brain.Event:2"))

    def __enter__(self) -> EventFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add_scalar(self, tag: str, value: float, step: int, walltime: Optional[float] = None) -> None:
        """A number, as a tensor of one double: bytes are exact to 2**53, unlike as float32."""
        tensor = _number(1, DOUBLE) + _bytes(2, b"") + _double(6, value)
        self._summary(tag, "scalars", tensor, step, walltime)

    def add_text(self, tag: str, text: str, step: int = 0, walltime: Optional[float] = None) -> None:
        """A text."""
        tensor = _number(1, STRING) + _bytes(2, _bytes(2, _number(1, 1))) + _text(8, text)
        self._summary(f"{tag}/text_summary", "text", tensor, step, walltime)

    def _summary(self, tag: str, plugin: str, tensor: bytes, step: int, walltime: Optional[float]) -> None:
        metadata = _bytes(1, _text(1, plugin))
        value = _text(1, tag) + _bytes(9, metadata) + _bytes(8, tensor)
        at = time() if walltime is None else walltime
        self._record(_double(1, at) + _number(2, step) + _bytes(5, _bytes(1, value)))

    def _record(self, event: bytes) -> None:
        length = struct.pack("<Q", len(event))
        self._file.write(length + _checksum(length) + event + _checksum(event))


DOUBLE, STRING = 2, 7  # of DataType


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _table() -> List[int]:
    """Of CRC-32C, by byte."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_CRC = _table()


def _checksum(data: bytes) -> bytes:
    """CRC-32C, masked as records have it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
