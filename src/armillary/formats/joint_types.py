"""The joint types that a file may hold besides the built-in ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast, final

from armillary.errors import ModelError, PluginError, quote
from armillary.forks import IMPORT_LOCK
from armillary.model.joint import Joint
from armillary.model.joints import JOINT_TYPES

if TYPE_CHECKING:
    from armillary.plugins import Offer

__all__ = ["PluginJoints", "by_tag", "joint_type"]


def by_tag(
    joints: Mapping[str, type[Joint]] | Iterable[type[Joint]],
) -> dict[str, type[Joint]]:
    """Return a caller's joint classes by tag.

    Raises:
        ModelError: One is not a subclass of Joint, or two share a tag.
    """
    pairs: list[tuple[str, Any]]
    if isinstance(joints, Mapping):
        pairs = list(cast(Mapping[str, Any], joints).items())
    else:
        pairs = [(getattr(kind, "tag", ""), kind) for kind in joints]
    kinds: dict[str, type[Joint]] = {}
    for tag, given in pairs:
        if not (isinstance(given, type) and issubclass(given, Joint)):
            shown = quote(cast(object, given))
            raise ModelError(f"joints= takes subclasses of Joint, not {shown}.")
        kind: type[Joint] = given
        taken = kinds.get(tag, JOINT_TYPES.get(tag, kind))
        if taken is not kind:
            raise ModelError(
                f"Joint type {quote(tag)} is {taken.__module__}.{taken.__qualname__} "
                f"already; give {kind.__qualname__} another tag."
            )
        kinds[tag] = kind
    return kinds


@final
class PluginJoints(Mapping[str, type[Joint]]):
    """The joint classes of allowed plug-ins by tag, without the built-in ones.

    Looking one up imports it, and nothing else; listing the tags imports nothing.
    """

    def __init__(self, packages: Iterable[str] = ()) -> None:
        """Allow the plug-ins of these packages and those of the configuration.

        Raises:
            UnknownName: One of the packages is not installed or offers no joints.
            ModelError: `packages` is a string instead of a list of strings.
        """
        self._packages: tuple[str, ...] = ()
        if packages not in ((), []):
            with IMPORT_LOCK:  # few files hold joints of plug-ins
                from armillary.plugins import JOINTS, checked_packages

            self._packages = checked_packages(JOINTS, packages)

    @cached_property
    def _offers(self) -> dict[str, list[Offer]]:
        """Return the allowed offers by tag."""
        with IMPORT_LOCK:
            from armillary.plugins import JOINTS, allowed_offers

        offers_by_tag: dict[str, list[Offer]] = {}
        for offer in allowed_offers(JOINTS, self._packages):
            if offer.tag not in JOINT_TYPES:
                offers_by_tag.setdefault(offer.tag, []).append(offer)
        return offers_by_tag

    def __iter__(self) -> Iterator[str]:
        return iter(self._offers)

    def __len__(self) -> int:
        return len(self._offers)

    def __contains__(self, tag: object) -> bool:
        return tag in self._offers

    def __getitem__(self, tag: str) -> type[Joint]:
        """Return the class of a joint type.

        Raises:
            KeyError: No allowed plug-in offers it.
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
    """Import the class that an allowed plug-in offers.

    Raises:
        PluginError: It cannot be imported, or is not that joint type.
    """
    with IMPORT_LOCK:
        from armillary.plugins import load

    kind = load(offer)
    if not (isinstance(kind, type) and issubclass(kind, Joint)):
        raise _wrong(offer, f"{quote(cast(Any, kind))}, not a subclass of Joint")
    if kind.tag != offer.tag:
        raise _wrong(offer, f"a class whose tag is {quote(kind.tag)}")
    return kind


def _wrong(offer: Offer, what: str) -> PluginError:
    return PluginError(
        f"Plug-in {offer.label} is broken: for joint type {quote(offer.tag)} it offers "
        f"{what}."
    )
