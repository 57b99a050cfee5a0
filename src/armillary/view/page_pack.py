"""Data of a page as text: JSON and arrays, compressed.

`page/unpack.js` describes the layout and reads it.
"""

from __future__ import annotations

import base64
import gzip
import json
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import viser

__all__ = ["Arrays", "messages_of", "packed"]

ALIGNMENT: Final = 8
UNSENT: Final = frozenset({"ReplayDoneMessage", "RunJavascriptMessage"})


class Arrays:
    """Arrays that the JSON of a page refers to; equal ones are kept once."""

    def __init__(self) -> None:
        """Begin without any."""
        self.contents: list[bytes] = []
        self._numbers: dict[bytes, int] = {}

    def add(self, content: bytes, dtype: str) -> dict[str, Any]:
        """Return what stands in the JSON for an array."""
        number = self._numbers.setdefault(content, len(self.contents))
        if number == len(self.contents):
            self.contents.append(content)
        return {"__binary_index": number, "dtype": dtype}

    def put(self, value: Any) -> Any:
        """Return a value in which references stand for arrays and bytes."""
        match value:
            case dict():
                items = cast("dict[str, Any]", value).items()
                return {key: self.put(each) for key, each in items}
            case list() | tuple():
                return [self.put(each) for each in cast("list[Any]", value)]
            case bytes():
                return self.add(value, "|u1")
            case np.ndarray():
                array = cast("npt.NDArray[Any]", value)
                return self.add(array.tobytes(), array.dtype.str)
            case _:
                return value


def messages_of(server: viser.ViserServer) -> list[dict[str, Any]]:
    """Return the messages by which a new browser learns what a server shows."""
    server.flush()
    websockets: Any = server._websock_server  # pyright: ignore[reportPrivateUsage]
    buffer = websockets.get_message_buffer()
    with buffer.buffer_lock:
        found = [buffer.message_from_id[k] for k in sorted(buffer.message_from_id)]
    return [_message(each) for each in found if type(each).__name__ not in UNSENT]


def packed(data: dict[str, Any]) -> str:
    """Return the text of data, arrays among it."""
    arrays = Arrays()
    found = arrays.put(data)
    found["lengths"] = [len(each) for each in arrays.contents]
    text = json.dumps(found, separators=(",", ":")).encode()
    content = bytearray(len(text).to_bytes(8, "little") + text)
    for each in arrays.contents:
        content += bytes(-len(content) % ALIGNMENT) + each
    return base64.b64encode(gzip.compress(content, mtime=0)).decode()


def _message(message: Any) -> dict[str, Any]:
    buffers: list[memoryview[int]] = []
    found = message.as_serializable_dict(buffers)
    return _filled(found, buffers)


def _filled(value: Any, buffers: list[memoryview[int]]) -> Any:
    """Return a message with its arrays in their places."""
    match value:
        case {"__binary_index": int(number), "dtype": str(dtype)}:
            return np.frombuffer(buffers[number].tobytes(), dtype)
        case dict():
            items = cast("dict[str, Any]", value).items()
            return {key: _filled(each, buffers) for key, each in items}
        case list() | tuple():
            return [_filled(each, buffers) for each in cast("list[Any]", value)]
        case _:
            return value
