"""A JSON file while it is read: its values and diagnostics."""

from __future__ import annotations

import json
import re
from functools import cache, cached_property
from typing import Any, Final, NoReturn, TypeVar

import msgspec
from msgspec.structs import replace

from armillary.errors import FormatError, quote
from armillary.forks import IMPORT_LOCK
from armillary.formats.diagnostic import Diagnostic, Place, Report, Severity
from armillary.formats.json.locations import (
    Steps,
    find_duplicate,
    find_odd,
    locations,
    place,
)

__all__ = ["Document"]

T = TypeVar("T")

_BOM: Final = b"\xef\xbb\xbf"
_KEY_END: Final = b'":'
_BYTE: Final = re.compile(r"\(byte (\d+)\)$")
_AT: Final = re.compile(r"(?:^| - )at `(\$[^`]*)`$|$")
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_JSON_NAMES: Final = {
    "`str`": "a string",
    "`float`": "a number",
    "`int`": "a whole number",
    "`bool`": "true or false",
    "`array`": "an array",
    "`object`": "an object",
}


class Document:
    """The text of a JSON file, and the diagnostics of reading it.

    Diagnostics name parts by their steps from the root; lines and columns are looked up
    once, at the end, and only if there are diagnostics.
    """

    def __init__(self, data: bytes, path: str, report: Report) -> None:
        self._data = data.removeprefix(_BOM)
        self._path = path
        self._report = report
        self._found: list[tuple[Steps, Diagnostic]] = []

    def error(self, steps: Steps, code: str, message: str, *, hint: str = "") -> None:
        """Add a diagnostic that makes the file unusable; a final full stop is cut."""
        self._add(steps, Severity.ERROR, code, message, hint)

    def warning(self, steps: Steps, code: str, message: str, *, hint: str = "") -> None:
        """Add a diagnostic of what is doubtful, or left out."""
        self._add(steps, Severity.WARNING, code, message, hint)

    def note(self, steps: Steps, code: str, message: str, *, hint: str = "") -> None:
        """Add a diagnostic that changes no answer."""
        self._add(steps, Severity.NOTE, code, message, hint)

    def _add(
        self, steps: Steps, severity: Severity, code: str, message: str, hint: str
    ) -> None:
        diagnostic = Diagnostic(
            place=Place(self._path),
            severity=severity,
            code=code,
            message=message.removesuffix("."),
            hint=hint,
        )
        self._found.append((steps, diagnostic))

    def report_all(self) -> None:
        """Add the diagnostics to the report, and raise if one of them is an error.

        Raises:
            FormatError: There are errors.
        """
        if self._found:
            steps_of_all = (steps for steps, _ in self._found)
            known = locations(self._text, steps_of_all, self._path)
            for steps, diagnostic in self._found:
                self._report.add(
                    replace(diagnostic, place=known.get(steps, diagnostic.place))
                )
            self._found.clear()
        self._report.raise_if_errors()

    def decode(self, kind: type[T]) -> T:
        """Return the whole file as a value of this kind.

        Raises:
            FormatError: The file is not JSON, or another value.
        """
        try:
            with IMPORT_LOCK:
                decoder = _decoder(kind)
            return decoder.decode(self._data)
        except msgspec.ValidationError as error:
            self.mismatch(error, ())
            self.report_all()
            raise AssertionError(error) from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._malformed(error)

    def check_keys(self, decoded: Any = None) -> None:
        """Refuse objects with two members of one name, one of which would be lost.

        decoded: The value of the whole file, which makes this faster.

        Raises:
            FormatError: There is one.
        """
        if decoded is not None and self._holds_all_keys(decoded):
            return
        try:
            json.loads(self._data, object_pairs_hook=_distinct)
        except _Duplicate:
            duplicate = find_duplicate(self._text)
            assert duplicate is not None
            key, offset = duplicate
            message = f"the key {quote(key)} is given twice in one object"
            self._stop("duplicate-key", message, offset=offset, hint="Remove one.")
        except RecursionError as error:
            self._malformed(error)

    def _holds_all_keys(self, decoded: Any) -> bool:
        """Return whether a value surely has as many keys as the text.

        Strings look like the end of a key equally often in both, unless some of their
        characters are escaped by number.
        """
        if b"\\u" in self._data:
            return False
        # Of members with one name decoding keeps the last, so that such a text, laid
        # out without blanks, has more `":` than the value written again.
        text = msgspec.json.format(self._data, indent=-1)
        return text.count(_KEY_END) == msgspec.json.encode(decoded).count(_KEY_END)

    def mismatch(self, error: msgspec.ValidationError, steps: Steps) -> None:
        """Add what the decoder found in the part at `steps`."""
        text = str(error)
        where = _AT.search(text)
        assert where is not None
        message = text[: where.start()]
        for key, index in _STEP.findall(where[1] or ""):
            steps = (*steps, key or int(index))
        unknown = _UNKNOWN.fullmatch(message)
        if unknown:
            name = unknown[1]
            message = f"{_described(steps)} has no field {quote(name)}"
            self.error((*steps, name), "unknown-field", message)
            return
        if "out of range" in message:
            odd = find_odd(self._text)
            if odd is not None:
                self._stop("bad-number", odd[0], offset=odd[1])
        for name, words in _JSON_NAMES.items():
            message = message.replace(name, words)
        message = f"{_described(steps)}: {message[:1].lower()}{message[1:]}"
        self.error(steps, "wrong-type", message)

    @cached_property
    def _text(self) -> str:
        return self._data.decode("utf-8", errors="replace")

    def _malformed(self, error: Exception) -> NoReturn:
        """Raise the error for bytes that are not JSON, with the best explanation."""
        try:
            text = self._data.decode("utf-8")
            json.loads(text)
        except UnicodeDecodeError as wrong:
            offset = len(self._data[: wrong.start].decode("utf-8"))
            message = f"byte 0x{self._data[wrong.start]:02x} is not UTF-8"
            self._stop("encoding", message, offset=offset, hint="Save it as UTF-8.")
        except RecursionError:
            message = "objects and arrays are nested too deeply"
            self._stop("too-deep", message)
        except json.JSONDecodeError as wrong:
            self._stop_at(wrong)
        except ValueError:  # a whole number of too many digits
            pass
        odd = find_odd(self._text)
        if odd is not None:
            self._stop("malformed", odd[0], offset=odd[1])
        match = _BYTE.search(str(error))
        offset = None
        if match:
            offset = len(self._data[: int(match[1])].decode("utf-8", errors="replace"))
        reason = _BYTE.sub("", str(error)).strip()
        self._stop("malformed", f"this is not JSON: {reason}", offset=offset)

    def _stop_at(self, wrong: json.JSONDecodeError) -> NoReturn:
        """Raise the error for a text that is not JSON from an offset on."""
        cut = len(self._text.rstrip())
        is_cut = wrong.pos >= cut or wrong.msg.startswith("Unterminated string")
        what = "the file is empty" if not cut else "the file ends too early"
        message = what if is_cut else f"this is not JSON: {wrong.msg.lower()}"
        self._stop("truncated" if is_cut else "malformed", message, offset=wrong.pos)

    def _stop(
        self, code: str, message: str, *, offset: int | None = None, hint: str = ""
    ) -> NoReturn:
        where = Place(self._path)
        if offset is not None:
            where = place(self._text, offset, self._path)
        self._report.error(where, code, message, hint=hint)
        self._report.raise_if_errors()
        raise FormatError(message)


class _Duplicate(Exception):
    """An object has two members of one name."""


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) != len(pairs):
        raise _Duplicate


def _described(steps: Steps) -> str:
    """Return the path of a part: `links[3].limits`."""
    text = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in steps)
    return text.lstrip(".") or "the file"


@cache
def _decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    # Two threads that make decoders of the same classes at once crash msgspec.
    return msgspec.json.Decoder(kind)
