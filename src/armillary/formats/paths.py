"""References to other files, followed only into folders that are allowed."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeAlias, final
from urllib.parse import unquote

from msgspec.structs import replace

from armillary.errors import FormatError, nearest, quote
from armillary.forks import IMPORT_LOCK
from armillary.formats.diagnostic import NOWHERE, Diagnostic, Place, fault
from armillary.formats.files import likely_file, read_bytes
from armillary.formats.packages import (
    MODEL,
    PACKAGE,
    folder_beside,
    folders_of,
    own_folder,
)
from armillary.limits import FILE_SIZE, REFERENCE_LENGTH

__all__ = [
    "Files",
    "FollowedReference",
    "KnownFolders",
    "Roots",
    "check_plain",
    "refusal",
]

MOST_SHOWN: Final = 4

# Not compiled here: a cell without references needs none.
_SCHEME: Final = r"([A-Za-z][A-Za-z0-9+.-]+):"
_DRIVE: Final = r"[A-Za-z]:"
_CONTROL: Final = r"[\x00-\x1f\x7f]"
_SCHEMES: Final = ("package", "model", "file")
_NETWORK: Final = ("http", "https", "ftp")
_FUEL: Final = r"(?i:https?)://(?:fuel|app)\.(?:gazebosim|ignitionrobotics)\.org/"
_PLAIN_NAME: Final = r"[A-Za-z0-9_.-]+"
_NO_NAMES: Final = ("", ".", "..")

KnownFolders: TypeAlias = dict[str | tuple[str, str], str]
"""What one reading knows of folders. By a path: where it leads through symbolic links.
By the folder of a file and the start of a reference in it, up to its last /: the folder
where the files with this start are, if the file may read them."""


class Files(Protocol):
    """Files that references lead to: those in folders, `Roots`, or in an archive."""

    def find(
        self, reference: str, *, base: str | os.PathLike[str], place: Place
    ) -> Path | Diagnostic:
        """Return the file that a reference names, or why it is not followed.

        base: The folder of the file that refers.
        place: The location of the reference.
        """
        ...

    def read(self, path: str | os.PathLike[str], cap: int = FILE_SIZE.most) -> bytes:
        """Return the bytes of a file that was found.

        cap: The most bytes that it may have.

        Raises:
            FormatError: It has more, or cannot be read.
        """
        ...

    def size(self, path: str | os.PathLike[str]) -> int:
        """Return the number of bytes of a file that was found."""
        ...

    def on_disk(
        self, path: str | os.PathLike[str]
    ) -> AbstractContextManager[tuple[Path, Roots]]:
        """Return where a stage of USD that was found is on disk, and its roots.

        The library that reads stages opens files itself; those of an archive are copied
        for as long as the context is open.
        """
        ...


class FollowedReference(NamedTuple):
    """A reference that was followed, and where it led.

    Attributes:
        reference, base, place: As for `Roots.find`.
        found: The path of the file, or why it was not followed.
    """

    reference: str
    base: str
    place: Place
    found: str | Diagnostic


@final
class Roots:
    """The folders into which files may refer.

    packages: The folder of each package, for `package://name/...` and `model://name/...`.
    folders: Folders in which a package that `packages` does not name is a folder of
        that name, and in which relative references are looked up.

    A file's own folder is always allowed, and so is the package that it is in: the
    nearest folder above it with a `package.xml`. Other packages and models are looked
    up in the environment, see `armillary.formats.packages`. Paths are compared after
    symbolic links are followed, so that no link leads out.
    """

    __slots__ = ("_allowed_from", "_folders", "_noted", "_packages")

    def __init__(
        self,
        *,
        packages: Mapping[str, str | os.PathLike[str]] | None = None,
        folders: Iterable[str | os.PathLike[str]] = (),
    ) -> None:
        self._packages: dict[str, str] = {
            name: os.path.realpath(os.fsdecode(folder))
            for name, folder in (packages or {}).items()
        }
        self._folders = tuple(os.path.realpath(os.fsdecode(each)) for each in folders)
        self._allowed_from: dict[str, tuple[str, ...]] = {}
        self._noted: list[FollowedReference | None] | None = None

    @contextmanager
    def noting(self) -> Generator[list[FollowedReference | None]]:
        """Note what is asked of the roots, by one reading.

        None stands for all but references, such as a file that is read.
        """
        self._noted = noted = list[FollowedReference | None]()
        try:
            yield noted
        finally:
            self._noted = None

    def _note_more(self) -> None:
        if self._noted is not None:
            self._noted.append(None)

    def still_lead(self, followed: Iterable[FollowedReference]) -> bool:
        """Return whether references lead where they led."""
        known: KnownFolders = {}
        return all(
            self._found(each.reference, each.base, each.place, known) == each.found
            for each in followed
        )

    @property
    def packages(self) -> Mapping[str, Path]:
        """Return the folder of each package."""
        return MappingProxyType({k: Path(each) for k, each in self._packages.items()})

    @property
    def folders(self) -> tuple[Path, ...]:
        """Return the other folders."""
        return tuple(map(Path, self._folders))

    @property
    def as_texts(self) -> tuple[object, ...]:
        """Return what tells these roots from others."""
        return tuple(self._packages.items()), self._folders

    @property
    def is_given(self) -> bool:
        """Return whether the caller names any package or folder."""
        return bool(self._packages or self._folders)

    def find(
        self,
        reference: str,
        *,
        base: str | os.PathLike[str],
        place: Place,
        known: KnownFolders | None = None,
    ) -> Path | Diagnostic:
        """Return the plain file that a reference names, or why it is not followed.

        reference: `package://name/rest`, `package:///name/rest`, `model://name/rest`,
            `file:///path`, or a relative or absolute path.
        base: The folder of the file that refers.
        place: The location of the reference.
        known: What is known of folders, which is added to: that of one reading, whose
            references are often to the same ones.
        """
        known = {} if known is None else known
        found = self.path_of(reference, os.fspath(base), place, known)
        return Path(found) if isinstance(found, str) else found

    def path_of(
        self, reference: str, base: str, place: Place, known: KnownFolders
    ) -> str | Diagnostic:
        """Return what `find` does, a path as a text: objects of them take longer."""
        found = self._found(reference, base, place, known)
        if self._noted is not None:
            self._noted.append(FollowedReference(reference, base, place, found))
        return found

    def _found(
        self, reference: str, base: str, place: Place, known: KnownFolders
    ) -> str | Diagnostic:
        home = _home(base, known)
        # Beside a file that was found in the first place to look at, another one has to
        # be there, and no link; what it takes to find the folder is known.
        end = reference.rfind("/") + 1
        folder, name = (home, reference[:end]), reference[end:]
        real = known.get(folder)
        is_short = len(reference) <= REFERENCE_LENGTH.most
        if real is not None and is_short and re.fullmatch(_PLAIN_NAME, name):
            path = os.path.join(real, name)
            with suppress(OSError):
                if stat.S_ISREG(os.lstat(path).st_mode):
                    return path
        try:
            return self._follow(reference, home, known, folder)
        except FormatError as error:
            return replace(error.diagnostics[0], place=place)

    def read(self, path: str | os.PathLike[str], cap: int = FILE_SIZE.most) -> bytes:
        """Return the bytes of a plain file, see `read_bytes`."""
        self._note_more()
        return read_bytes(path, cap)

    def size(self, path: str | os.PathLike[str]) -> int:
        """Return the number of bytes of a file."""
        self._note_more()
        return os.path.getsize(path)

    def on_disk(
        self, path: str | os.PathLike[str]
    ) -> AbstractContextManager[tuple[Path, Roots]]:
        """Return a path and these roots, see `Files.on_disk`."""
        self._note_more()
        return nullcontext((Path(path), self))

    def allowed(self, base: str | os.PathLike[str]) -> tuple[Path, ...]:
        """Return the folders that a file in `base` may refer to."""
        self._note_more()
        return tuple(map(Path, self._allowed(os.path.realpath(base))))

    # Paths are texts: objects of them take most of the time of a reference.

    def _allowed(self, home: str) -> tuple[str, ...]:
        folders = self._allowed_from.get(home)
        if folders is None:
            own = own_folder(Path(home))
            further = () if own is None else (str(own),)
            others = (*self._packages.values(), *self._folders, *further)
            folders = self._allowed_from[home] = (home, *others)
        return folders

    def package(
        self, name: str, *, base: str | os.PathLike[str], place: Place
    ) -> Path | Diagnostic:
        """Return the folder of a package, or why it cannot be read.

        base: The folder of the file that refers to it.
        place: The location of the reference.
        """
        self._note_more()
        home = os.path.realpath(base)
        try:
            candidates, _ = self._in_package(
                f"package://{name}", PACKAGE, f"//{name}/.", home
            )
            folders = [
                Path(os.path.realpath(each))
                for each in candidates
                if os.path.isdir(each)
            ]
            if folders:
                return folders[0]
            raise refusal(
                "reference-package",
                f"there is no folder of package {quote(name)}",
                f"Give its folder: packages={{{quote(name)}: ...}}.",
            )
        except FormatError as error:
            return replace(error.diagnostics[0], place=place)

    def _follow(
        self, reference: str, home: str, known: KnownFolders, folder: tuple[str, str]
    ) -> str:
        """Return the file that a reference names.

        folder: The key of its folder in `known`.

        Raises:
            FormatError: It is not followed.
        """
        check_plain(reference)
        scheme = re.match(_SCHEME, reference)
        name = "" if scheme is None else scheme[1].lower()
        tail = "" if scheme is None else reference[scheme.end() :]
        allowed = self._allowed(home)
        if scheme is None:
            candidates = self._by_path(reference, home)
        elif name in (PACKAGE, MODEL):
            candidates, further = self._in_package(reference, name, tail, home)
            allowed += further
        elif name == "file":
            candidates = [str(Path(_local_path(reference, tail)))]
        elif name in _NETWORK:
            raise refusal(
                "reference-network",
                f"{quote(reference)} is on the network, and nothing is fetched",
                _how_to_fetch(reference),
            )
        else:
            raise refusal(
                "reference-scheme",
                f"{quote(reference)} is not followed: {scheme[1]} is an unknown scheme",
                f"Copy the file and use a path, or one of {', '.join(_SCHEMES)}.",
            )
        found = _first_allowed(reference, candidates, allowed, home, known)
        first = known.get(os.path.dirname(candidates[0]))
        if first is not None and any(_is_inside(first, root) for root in allowed):
            known[folder] = first
        return found

    def _by_path(self, reference: str, home: str) -> list[str]:
        """Return the files that a path may mean; an absolute one means itself only."""
        if os.path.isabs(reference):
            return [str(Path(reference))]
        return [_joined(folder, reference) for folder in (home, *self._folders)]

    def _in_package(
        self, reference: str, kind: str, tail: str, home: str
    ) -> tuple[list[str], tuple[str, ...]]:
        """Return the candidates for a file of a package or model, and known folders."""
        name, _, rest = tail.lstrip("/").partition("/")
        if not tail.startswith("//") or name in _NO_NAMES or not rest.strip("/"):
            raise refusal(
                "reference-package",
                f"{quote(reference)} does not name a file of a {kind}",
                f"Write {kind}://name/path/of/the/file.",
            )
        packages: tuple[str, ...] = ()
        if name in self._packages:
            folders = [self._packages[name]]
        else:
            folders = [_joined(folder, name) for folder in self._folders]
            known = map(os.path.realpath, folders_of(name, Path(home), kind))
            packages = tuple(filter(os.path.isdir, known))
            folders += packages
        if folders:
            # Some tools write a space as %20 here, some write it as it is.
            ways = dict.fromkeys((rest, unquote(rest).replace("\0", "")))
            candidates = [_joined(f, way.lstrip("/")) for f in folders for way in ways]
            return candidates, packages
        likely = nearest(name, self._packages)
        guess = f"Did you mean {quote(likely)}? If not, give" if likely else "Give"
        beside = folder_beside(name, Path(home), kind)
        folder = "..." if beside is None else _shown(beside)
        raise refusal(
            "reference-package",
            f"{quote(reference)}: the folder of {kind} {quote(name)} is not known",
            f"{guess} its folder: packages={{{quote(name)}: {folder}}}.",
        )


def _first_allowed(
    reference: str,
    candidates: list[str],
    allowed: tuple[str, ...],
    home: str,
    known: KnownFolders,
) -> str:
    """Return the first candidate that is a plain file inside an allowed root."""
    inside: list[str] = []
    outside: list[str] = []
    barred: list[str] = []
    for candidate in candidates:
        exists, real = _real(candidate, known)
        if not any(_is_inside(real, root) for root in allowed):
            (barred if exists else outside).append(real)
        elif exists and os.path.isfile(real):
            return real
        else:
            inside.append(real)
    if inside and not barred:
        raise _missing(reference, inside)
    folder = _shown(_common(Path(home), Path(barred[0]))) if barred else "..."
    raise refusal(
        "reference-outside",
        f"{quote(reference)} leads to {_shown((barred or outside)[0])}, "
        "outside of the folders that may be read",
        f"If it is trusted to be there, allow its folder: folders=[{folder}].",
    )


def _how_to_fetch(uri: str) -> str:
    """Return how to bring a file here that is on the network."""
    if not re.match(_FUEL, uri):
        return "Download the file, and refer to it by its path."
    with IMPORT_LOCK:
        import shlex

    return (
        f"Run: gz fuel download -u {shlex.quote(uri)}. Refer to it as "
        "model://name/..., and give its folder: packages={'name': ...}."
    )


def _common(home: Path, file: Path) -> Path:
    """Return the folder to allow for a file: the one that it shares with `home`.

    The other references are often below that folder, too. If it were the user's home
    or contained homes, it is the file's own.
    """
    common = Path(os.path.commonpath((home, file)))
    is_wide = Path.home().is_relative_to(common) or len(common.parts) <= 2
    return file.parent if is_wide else common


def _home(base: str, known: KnownFolders) -> str:
    """Return the folder of the file that refers, which need not exist."""
    try:
        return _real_folder(base, known)
    except OSError:
        return os.path.realpath(base)


def _joined(folder: str | Path, path: str) -> str:
    """Return a relative path in a folder, without empty parts and dots."""
    parts = path.split("/")
    if "" in parts or "." in parts:
        path = str(Path(path))
    return os.path.join(folder, path)


def _real_folder(folder: str, known: KnownFolders) -> str:
    """Return where a folder leads through symbolic links.

    Raises:
        OSError: It does not exist, or a cycle of links is on the way.
    """
    real = known.get(folder)
    if real is None:
        # Behind a cycle of links others would remain, as they are written.
        real = known[folder] = os.path.realpath(folder, strict=True)
    return real


def _is_inside(real: str, folder: str) -> bool:
    """Return whether a path is a folder, or inside of it; links are not followed."""
    return real.startswith(folder) and (
        len(real) == len(folder) or os.sep in (real[len(folder)], folder[-1])
    )


def _real(path: str, known: KnownFolders) -> tuple[bool, str]:
    """Return whether a path exists, and where it leads through symbolic links.

    In a path that does not exist, or with a cycle of links, links may remain, so it
    must not be opened.
    """
    folder, name = os.path.split(path)
    try:
        # Where its folder leads, and the file itself, which may be a link, too.
        if name not in _NO_NAMES:
            real = os.path.join(_real_folder(folder, known), name)
            if not stat.S_ISLNK(os.lstat(real).st_mode):
                return True, real
        return True, os.path.realpath(path, strict=True)
    except OSError:
        return False, os.path.realpath(path)


def refusal(code: str, message: str, hint: str) -> FormatError:
    """Return why a reference is not followed; the caller adds where it is."""
    return fault(NOWHERE, code, message, hint=hint)


def check_plain(reference: str) -> None:
    """Refuse what is not a path on any system, or is one only on another system.

    Raises:
        FormatError: It is not one.
    """
    path, syntax = "Write a path relative to this file.", "reference-syntax"
    checks = [
        (not reference.strip(), syntax, "names no file", path),
        (
            len(reference) > REFERENCE_LENGTH.most,
            syntax,
            f"has more than {REFERENCE_LENGTH.most} characters",
            path,
        ),
        (
            "$(" in reference or "${" in reference,
            syntax,
            "contains an unexpanded substitution",
            "Run xacro over the file.",
        ),
        (re.search(_CONTROL, reference), syntax, "contains control characters", path),
        (
            reference.startswith(("//", "\\\\")),
            "reference-network",
            "is on another machine",
            "Copy the file here.",
        ),
        (re.match(_DRIVE, reference), syntax, "is a path of a Windows drive", path),
        ("\\" in reference, syntax, "contains a backslash", "Write / between folders."),
    ]
    for is_wrong, code, message, hint in checks:
        if is_wrong:
            raise refusal(code, f"{quote(reference)} {message}", hint)


def _local_path(reference: str, tail: str) -> str:
    """Return the path of a `file:` reference, which must be on this machine."""
    if tail.startswith("//"):
        host, slash, rest = tail[2:].partition("/")
        if host not in ("", "localhost"):
            raise refusal(
                "reference-network",
                f"{quote(reference)} is on the machine {quote(host)}",
                "Copy the file here, or write file:/// with three slashes.",
            )
        tail = slash + rest
    path = unquote(tail)
    if not path.startswith("/") or "\0" in path:
        raise refusal(
            "reference-syntax",
            f"{quote(reference)} is not an absolute path",
            "Write file:///path/of/the/file.",
        )
    return path


def _shown(path: str | Path) -> str:
    return quote(str(path), longest=REFERENCE_LENGTH.most)


def _missing(reference: str, looked_at: list[str]) -> FormatError:
    """Return the refusal of a file that does not exist in the allowed folders."""
    shown = ", ".join(map(_shown, looked_at[:MOST_SHOWN]))
    more = len(looked_at) - MOST_SHOWN
    guesses = (likely_file(path) for path in looked_at)
    likely = next((name for name in guesses if name), None)
    return refusal(
        "reference-missing",
        f"{quote(reference)} does not exist: "
        f"no plain file {shown}{f' and {more} more' if more > 0 else ''}",
        f"Did you mean {quote(likely)}?" if likely else "",
    )
