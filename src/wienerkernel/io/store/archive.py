"""The container of a saved model: a zip file of stored members, read so strictly that a hostile one is harmless.

Any tool opens such a file, but `Archive` reads only the subset that `write_archive` makes: contiguous uncompressed
members from the first byte on, then the directory, then the end record. So members cannot overlap, expand or lie outside
the file, and never more memory is allocated than the file is large.
"""

from __future__ import annotations

import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from ..._typing import Array

__all__ = ["Archive", "FormatError", "write_archive"]

NAME = re.compile(rb"[a-z0-9_]+(\.[a-z0-9_]+)*\.(json|npy)")
LONGEST_NAME = 512
LOCAL_HEADER, DIRECTORY, END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
IN_ZIP64 = 0xFFFFFFFF
ZIP64_ABOVE = 2**30

NPY_MAGIC = b"\x93NUMPY\x01\x00"
NPY_HEADER = re.compile(
    rb"\{'descr': '<([fi])8', 'fortran_order': False, 'shape': \((?:([0-9]{1,15}),(?: ([0-9]{1,15}))?)\), \} *\n"
)


class FormatError(ValueError):
    """A file is not a saved model, is damaged, or has another version of the format.

    Examples
    --------
    >>> from wienerkernel import FormatError
    >>> issubclass(FormatError, ValueError)
    True
    """


def write_archive(file: IO[bytes], text: bytes, arrays: Mapping[str, Array]) -> None:
    """Write ``model.json`` and arrays, (n,) or (n, m) of float64 or int64, as the members of a zip file."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        # No time stamps: the same model makes the same file.
        archive.writestr(zipfile.ZipInfo("model.json"), text)
        for name, values in arrays.items():
            little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
            member = zipfile.ZipInfo(f"{name}.npy")
            with archive.open(member, "w", force_zip64=little.nbytes > ZIP64_ABOVE) as out:
                np.lib.format.write_array_header_1_0(out, np.lib.format.header_data_from_array_1_0(little))
                out.write(little.reshape(-1).view(np.uint8).data)


class Archive:
    """The members of a file that `write_archive` may have written."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = Path(path).open("rb")  # noqa: SIM115  # closed by __exit__
        try:
            self._size = os.fstat(self._file.fileno()).st_size
            self._members = self._walk()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def unread(self) -> list[str]:
        """Members that have not been read yet."""
        return sorted(self._members)

    def text(self, limit: int) -> bytes:
        """Content of ``model.json``, of at most ``limit`` bytes."""
        _, size, _ = self._members.get("model.json", (0, 0, 0))
        if size > limit:
            raise FormatError(f"model.json has {size} bytes, the limit is {limit}")
        return bytes(self._bytes("model.json"))

    def array(self, name: str) -> Array:
        """Array of a member, (n,) or (n, m) of float64 or int64; each can be read once."""
        data = self._bytes(f"{name}.npy")
        length = len(NPY_MAGIC) + 2
        if len(data) < length or bytes(data[: len(NPY_MAGIC)]) != NPY_MAGIC:
            raise FormatError(f"{name}.npy is not an array in version 1.0 of the NumPy format")
        end = length + int(data[length - 2]) + 256 * int(data[length - 1])
        header = NPY_HEADER.fullmatch(bytes(data[length:end]))
        if header is None:
            raise FormatError(f"{name}.npy must hold float64 or int64 in C order with one or two axes")
        shape = tuple(int(extent) for extent in header.groups()[1:] if extent is not None)
        n_bytes = 8 * int(np.prod(shape, dtype=object))
        if n_bytes != len(data) - end:
            raise FormatError(
                f"{name}.npy claims the shape {shape}, {n_bytes} bytes, but holds {len(data) - end}"
            )
        # Headers are padded to 64 bytes; otherwise the numbers would be misaligned.
        numbers = np.frombuffer(data, dtype=f"<{header[1].decode()}8", offset=end).reshape(shape)
        return numbers if numbers.flags.aligned else numbers.copy()

    def _bytes(self, name: str) -> Any:
        """Content of a member as an array of bytes, its checksum verified."""
        if name not in self._members:
            raise FormatError(f"there is no {name} in the file")
        start, size, checksum = self._members.pop(name)
        data = np.empty(size, dtype=np.uint8)
        self._file.seek(start)
        if self._file.readinto(data.data) != size or zlib.crc32(data.data) != checksum:
            raise FormatError(f"{name} is damaged: its checksum is wrong")
        return data

    def _walk(self) -> dict[str, tuple[int, int, int]]:
        """Position, size and checksum of every member, from the local headers and not from the directory."""
        members: dict[str, tuple[int, int, int]] = {}
        position = 0
        while (mark := self._peek(position, 4)) == LOCAL_HEADER:
            name, start, size, checksum = self._header(position)
            if name in members:
                raise FormatError(f"{name} is in the file twice")
            members[name] = start, size, checksum
            position = start + size
        if mark != DIRECTORY or not members:
            raise FormatError("the file is not a saved model, or it is truncated")
        end = self._peek(self._size - 22, 22)
        if len(end) != 22 or end[:4] != END:
            raise FormatError("the end of the file is missing")
        _, _, here, total, _, offset, comment = struct.unpack("<4H2LH", end[4:])
        if here != total or total != len(members) or offset not in (position, IN_ZIP64) or comment:
            raise FormatError("the directory does not match the members of the file")
        return members

    def _header(self, position: int) -> tuple[str, int, int, int]:
        """Name of a member, position and size of its content, and its checksum."""
        header = self._peek(position, 30)
        if len(header) != 30:
            raise FormatError("the file is truncated")
        _, flags, method, _, _, checksum, packed, size, n_name, n_extra = struct.unpack("<5H3L2H", header[4:])
        start = position + 30 + n_name + n_extra
        name = self._peek(position + 30, n_name)
        if n_name > LONGEST_NAME or NAME.fullmatch(name) is None:
            raise FormatError(f"{name[:80]!r} is not a valid member name of a model")
        if flags or method:
            raise FormatError(
                f"{name.decode()} is compressed or encrypted; members of a model must be neither"
            )
        if size == packed == IN_ZIP64:
            extra = self._peek(start - n_extra, n_extra)
            if len(extra) != 20 or extra[:4] != b"\x01\x00\x10\x00":
                raise FormatError(f"the size of {name.decode()} is missing")
            size, packed = struct.unpack("<2Q", extra[4:])
        if size != packed or start + size > self._size:
            raise FormatError(f"{name.decode()} claims {size} bytes, more than there are in the file")
        return name.decode(), start, size, checksum

    def _peek(self, position: int, size: int) -> bytes:
        self._file.seek(max(position, 0))
        return self._file.read(size)
