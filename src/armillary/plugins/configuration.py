"""The user's configuration file: which plug-ins are allowed for good."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any, Final, cast

from armillary.errors import PluginError, nearest, quote
from armillary.limits import CONFIGURATION_SIZE
from armillary.user_folder import user_folder

__all__ = ["config_path", "configured", "own_content"]

VARIABLE: Final = "ARMILLARY_CONFIG"
FILE: Final = "config.toml"
KEYS: Final = ("plugins",)


def config_path() -> Path | None:
    """Return the path of the configuration; None if it is off or has no folder.

    `ARMILLARY_CONFIG` may only take trust away: its one value is `off`.

    Raises:
        PluginError: It has another value.
    """
    value = os.environ.get(VARIABLE)
    if value == "off":
        return None
    if value:
        raise PluginError(
            f"{VARIABLE} is {quote(value)}; it can only be 'off', which allows no "
            "plug-in. To allow one, name it in the configuration file, or in the call."
        )
    folder = user_folder(
        windows=("APPDATA", "AppData", "Roaming"),
        mac=("Library", "Application Support"),
        other=("XDG_CONFIG_HOME", ".config"),
    )
    return folder and folder / FILE


def configured() -> tuple[str, ...]:
    """Return the names of the packages whose plug-ins the configuration allows.

    Without a configuration file there are none.

    Raises:
        PluginError: The file cannot be read, is not the user's own, or has an unknown
            key or value.
    """
    import tomllib  # few calls come this far

    path = config_path()
    data = b"" if path is None else own_content(path)
    try:
        values = tomllib.loads(data.decode())
    except ValueError as error:  # of TOML, or of UTF-8
        raise _wrong(path, f"is not TOML: {error}") from error
    for key in values:
        if key not in KEYS:
            likely = nearest(key, KEYS)
            guess = f" Did you mean {quote(likely)}?" if likely else ""
            raise _wrong(path, f"has no key {quote(key)}.{guess} Known: plugins")
    names: Any = values.get("plugins", [])
    if not isinstance(names, list) or not all(
        isinstance(name, str) for name in cast(list[Any], names)
    ):
        raise _wrong(path, 'must list texts: plugins = ["name-of-a-package"]')
    return tuple(cast(list[str], names))


def own_content(path: Path) -> bytes:
    """Return the bytes of a file of the user's own, none where it does not exist.

    Raises:
        PluginError: Others may write it, or it cannot be read.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise _wrong(path, "is not a plain file")
        if status.st_size > CONFIGURATION_SIZE.most:
            raise _wrong(path, f"has more than {CONFIGURATION_SIZE.most} bytes")
        if sys.platform != "win32" and (
            status.st_uid not in {0, os.getuid()} or status.st_mode & stat.S_IWOTH
        ):
            raise _wrong(
                path, "may be changed by other users: remove their right to write it"
            )
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        raise _wrong(path, f"cannot be read: {error.strerror}") from error


def _wrong(path: Path | None, what: str) -> PluginError:
    return PluginError(f"The configuration file {path} {what}.")
