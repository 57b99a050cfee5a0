"""What installed packages offer, read from their metadata; nothing is imported."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from importlib.metadata import Distribution

__all__ = ["GROUPS", "JOINTS", "POST_PROCESSORS", "Offer", "normal", "offers"]

JOINTS: Final = "armillary.joints"
POST_PROCESSORS: Final = "armillary.post_processors"
GROUPS: Final = {JOINTS: "joint type", POST_PROCESSORS: "post-processor"}
"""The groups of entry points, and what each offers."""
ENTRY_POINTS: Final = "entry_points.txt"

_SEPARATORS: Final = re.compile(r"[-_.]+")


class Offer(NamedTuple):
    """A joint type, or a post-processor, that an installed package offers.

    Attributes:
        package: Name of the distribution.
        version: Of the distribution, empty where it has none.
        tag: The joint type, as files name it, or the language.
        target: Where its class, or the post-processor, is: `module:Name`.
        kind: What it is: `joint type` or `post-processor`.
    """

    package: str
    version: str
    tag: str
    target: str
    kind: str = GROUPS[JOINTS]

    @property
    def label(self) -> str:
        """Return the package as messages show it: `acme-lifts 1.2`."""
        return f"{self.package} {self.version}".rstrip()


def offers(group: str = JOINTS) -> tuple[Offer, ...]:
    """Return what all installed packages offer, in the order of their names.

    Of two packages of one name, the first on the path counts, as for imports.

    group: `JOINTS` or `POST_PROCESSORS`.
    """
    found = _offers(tuple((folder, _changed(folder)) for folder in sys.path))
    return tuple(offer for offer in found if offer.kind == GROUPS[group])


def normal(package: str) -> str:
    """Return the one spelling of a package's name: `Acme_Lifts` is `acme-lifts`."""
    return _SEPARATORS.sub("-", package.strip()).lower()


@lru_cache(maxsize=4)
def _offers(path: tuple[tuple[str, int], ...]) -> tuple[Offer, ...]:
    """Return the offers on a path; the times in it notice what is installed later."""
    from importlib.metadata import distributions  # it imports 40 modules

    by_package: dict[str, list[Offer]] = {}
    for distribution in distributions():
        offered = list(_of(distribution))
        if offered:
            by_package.setdefault(normal(offered[0].package), offered)
    return tuple(offer for name in sorted(by_package) for offer in by_package[name])


def _changed(folder: str) -> int:
    """Return when something was last installed in a folder or removed [ns]."""
    try:
        return os.stat(folder or os.curdir).st_mtime_ns
    except OSError:
        return 0


def _of(distribution: Distribution) -> Iterator[Offer]:
    """Yield what a package offers; one that cannot be read or named offers nothing."""
    try:
        pairs = list(_pairs(distribution.read_text(ENTRY_POINTS) or ""))
        if not pairs:
            return
        metadata = distribution.metadata
        package, version = (
            (metadata.get_all(key) or [""])[0] for key in ("Name", "Version")
        )
    except (OSError, ValueError, LookupError):
        return
    for kind, tag, target in pairs if package else ():
        yield Offer(package, version, tag, target, kind)


def _pairs(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield kinds, names and values in our sections of an `entry_points.txt`."""
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[] ")
        elif section in GROUPS and line and line[0] not in "#;":
            tag, _, target = line.partition("=")
            yield GROUPS[section], tag.strip(), target.strip()
