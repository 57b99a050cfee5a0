"""Which of the packages that are installed may be imported."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from armillary.errors import ModelError, quote, unknown
from armillary.plugins.configuration import configured
from armillary.plugins.offers import (
    JOINTS,
    POST_PROCESSORS,
    Offer,
    normal,
    offers,
)

__all__ = ["allowed_offers", "checked_packages"]

OFFERED: Final = {JOINTS: "joints", POST_PROCESSORS: "post-processors"}


def checked_packages(group: str, packages: Iterable[str]) -> tuple[str, ...]:
    """Return the names of packages that a caller allows.

    Args:
        group: `JOINTS` or `POST_PROCESSORS`.
        packages: Their names.

    Raises:
        UnknownName: One of the packages is not installed or offers nothing of these.
        ModelError: `packages` is a string instead of a list of strings.
    """
    if isinstance(packages, str):
        raise ModelError(
            f"plugins= takes a list of names: plugins=[{quote(packages)}]."
        )
    names = tuple(packages)
    found = offers(group) if names else ()  # they take 20 ms to find
    installed = {normal(offer.package) for offer in found}
    for name in names:
        if normal(name) not in installed:
            raise unknown(
                "plug-in",
                name,
                sorted(installed),
                hint=f"Name an installed package that offers {OFFERED[group]}.",
            )
    return names


def allowed_offers(group: str, packages: Iterable[str]) -> list[Offer]:
    """Return what packages offer that a caller, or the configuration, allows.

    Raises:
        UnknownName, ModelError: See `checked_packages`.
        PluginError: The configuration is faulty.
    """
    names = checked_packages(group, packages)
    allowed = {*map(normal, names), *map(normal, configured())}
    return [offer for offer in offers(group) if normal(offer.package) in allowed]
