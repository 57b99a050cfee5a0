"""The joints in plug-ins that are allowed, each imported when a file holds one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, cast, final

from armillary.errors import ModelError, PluginError, quote, unknown
from armillary.model.joint import Joint
from armillary.model.joints import JOINT_TYPES
from armillary.plugins import Offer, configured, load, normal, offers

__all__ = ["PluginJoints", "joint_type"]


@final
class PluginJoints(Mapping[str, type[Joint]]):
    """Classes by their tags, of the plug-ins that a caller or the user allows.

    Built-in types are never among them. Looking one up imports it, and nothing else;
    listing the tags imports nothing.
    """

    def __init__(self, packages: Iterable[str] = ()) -> None:
        """Allow the plug-ins of some packages besides those of the configuration.

        Raises:
            UnknownName: One of the packages is not installed or offers no joints.
            ModelError: `packages` is a text instead of a list of texts.
        """
        if isinstance(packages, str):
            raise ModelError(
                f"plugins= takes a list of names: plugins=[{quote(packages)}]."
            )
        self._packages = tuple(packages)
        installed = {normal(offer.package) for offer in offers() if self._packages}
        for name in self._packages:
            if normal(name) not in installed:
                raise unknown(
                    "plug-in",
                    name,
                    sorted(installed),
                    hint="Name an installed package that offers joints.",
                )

    @cached_property
    def _offers(self) -> dict[str, list[Offer]]:
        """Return what is allowed, by tag."""
        allowed = {*map(normal, self._packages), *map(normal, configured())}
        found: dict[str, list[Offer]] = {}
        for offer in offers():
            if normal(offer.package) in allowed and offer.tag not in JOINT_TYPES:
                found.setdefault(offer.tag, []).append(offer)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._offers)

    def __len__(self) -> int:
        return len(self._offers)

    def __contains__(self, tag: object) -> bool:
        return tag in self._offers

    def __getitem__(self, tag: str) -> type[Joint]:
        """Return the class of a joint type.

        Raises:
            KeyError: No plug-in that is allowed offers it.
            PluginError: Several do, or the one that does is broken.
        """
        first, *others = self._offers[tag]
        if others:
            named = " and ".join(offer.label for offer in (first, *others))
            raise PluginError(
                f"Joint type {quote(tag)} is offered by the plug-ins {named}. Allow "
                "one of them, or give the class: joints=[...]."
            )
        return joint_type(first)


def joint_type(offer: Offer) -> type[Joint]:
    """Import the class that a plug-in offers, which must be allowed.

    Raises:
        PluginError: It cannot be imported, or is no such joint type.
    """
    found = load(offer)
    if not (isinstance(found, type) and issubclass(found, Joint)):
        raise _wrong(offer, f"{quote(cast(Any, found))}, no subclass of Joint")
    if found.tag != offer.tag:
        raise _wrong(offer, f"a class whose tag is {quote(found.tag)}")
    return found


def _wrong(offer: Offer, what: str) -> PluginError:
    return PluginError(
        f"Plug-in {offer.label} is broken: for joint type {quote(offer.tag)} it offers "
        f"{what}."
    )
