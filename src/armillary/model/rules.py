"""Rules: which pairs of links are tested for collision, and why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal, Self, get_args

import msgspec

from armillary.errors import FormatError, ModelError, quote, unknown
from armillary.limits import RULE_PATTERNS, RULES
from armillary.model.fields import EMPTY, TupleOf, reduced, store_tuples
from armillary.model.link_pattern import check_side, is_exact, links_of

__all__ = ["Rule", "RuleReason", "Rules", "Touch", "Where"]

MOST_RULES: Final = RULES.most
MOST_PATTERNS: Final = RULE_PATTERNS.most
"""Different patterns of one set of rules."""

Where = Literal["any", "apart", "rigid", "adjacent", "joined", "home", "kin"]
"""Which of the pairs that its sides name a rule is about.

- `any`: all of them.
- `rigid`: those that never move in each other, being joined by fixed joints and fixed
  mounts.
- `adjacent`: a link and the next one below it, towards the world, that has shapes, or
  two links that a closure joins.
- `joined`: those that are adjacent, where links that are rigid with each other count as
  one; but of the links that are rigid with the base of a manipulator, such as a table
  in the file of a robot, only the one that carries the joint.
- `home`: those that touch, or are within 1e-6 m (1e-6 of a cell that is smaller than a
  metre), while the cell is at home as it was built, by the hulls of meshes. Only of
  pairs that are tested otherwise.
- `apart`: those that are neither rigid nor adjacent.
- `kin`: parent and child, or a link and a child of one of its siblings, where frames of
  mounts count as links; what RobWork leaves out by default.
"""


class RuleReason:
    """Words that rules give as their reason; any other will do as well."""

    USER: Final = "user"
    RIGID: Final = "rigid"
    ADJACENT: Final = "adjacent"
    NEVER: Final = "never"
    ALWAYS: Final = "always"
    DEFAULT: Final = "default"
    SELF: Final = "self"
    SRDF: Final = "srdf"
    ROBWORK: Final = "robwork"


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pairs of links that are tested, or not.

    Attributes:
        a: One side: the name of a link, a pattern of names with `*`, or `REGEX` and a
            regular expression.
        b: The other side; the order of the two does not matter.
        tested: Whether these pairs are tested.
        where: Which of them it is about: `any`, `rigid`, `adjacent`, `apart`, `joined`,
            `home` or `kin`.
        reason: Why, in a word: `adjacent`, `never`, `always`, `user` and so on.
    """

    a: str
    b: str
    tested: bool = False
    where: Where = "any"
    reason: str = RuleReason.USER

    def __post_init__(self) -> None:
        """Check both sides.

        Raises:
            ModelError: One is empty, too long, or no regular expression; or pairs that
                touch at home are to be included.
            UnknownName: There is no such `where`.
        """
        check_side(self.a)
        check_side(self.b)
        if self.where not in get_args(Where):
            raise unknown("choice of pairs", self.where, get_args(Where))
        if self.tested and self.where == "home":
            raise ModelError(
                "where='home' leaves pairs out; to test pairs that touch at home, "
                "include them by name."
            )

    def __str__(self) -> str:
        verb = "include" if self.tested else "exclude"
        where = "" if self.where == "any" else f" where {self.where}"
        return f"{verb} {quote(self.a)} and {quote(self.b)}{where} ({self.reason})"


class Touch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Links that may touch what a link holds, beside that link itself.

    Attributes:
        held_by: The link that holds, or a pattern of such.
        links: Links that may touch what it holds, or patterns of such.
        part: The attached part: a pattern of its links.
    """

    held_by: str
    links: TupleOf[str]
    part: str = "*"

    def __post_init__(self) -> None:
        """Check all sides.

        Raises:
            ModelError: One is empty, too long, or no regular expression.
        """
        store_tuples(self, "links")
        for side in self.sides:
            check_side(side)

    @property
    def sides(self) -> tuple[str, ...]:
        """Return all names and patterns in it."""
        return self.held_by, self.part, *self.links


RIGID: Final = Rule(a="*", b="*", where="rigid", reason=RuleReason.RIGID)
ADJACENT: Final = Rule(a="*", b="*", where="adjacent", reason=RuleReason.ADJACENT)

BY_DEFAULT: Final[Any] = (RIGID, ADJACENT)


class Rules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which pairs of links are tested for collision.

    The last rule that is about a pair decides on it; without one, `within` and
    `between` do. After that, and whatever was said, a link is not tested against what
    is fixed to it, mounted on it or attached to it.

    Attributes:
        within: Whether links of one manipulator are tested against each other.
        between: Whether links of different manipulators are.
        rules: Exceptions, in order; later ones override. Unless said otherwise, pairs
            that are rigid or adjacent are not tested.
        touches: What may touch an attached part.
    """

    within: bool = False
    between: bool = True
    rules: TupleOf[Rule] = BY_DEFAULT
    touches: TupleOf[Touch] = EMPTY

    def __post_init__(self) -> None:
        """Check how much work the rules make.

        Raises:
            ModelError: There are too many rules or patterns.
        """
        store_tuples(self, "rules", "touches")
        if len(self.rules) + len(self.touches) > MOST_RULES:
            raise ModelError(f"There are more than {MOST_RULES} rules.")
        patterns = [side for side in self.sides if not is_exact(side)]
        if len(patterns) > MOST_PATTERNS:
            raise ModelError(
                f"The rules hold {len(patterns)} different patterns, more than "
                f"{MOST_PATTERNS}; name the links instead."
            )

    # sets of rules that people know

    @classmethod
    def actin(cls) -> Self:
        """Return Actin's defaults: all between manipulators, nothing within."""
        return cls(rules=())

    @classmethod
    def robwork(cls, *, has_setup: bool = False) -> Self:
        """Return RobWork's defaults: everything but what is rigid.

        has_setup: Whether a setup follows. Without any, RobWork also leaves out
            children, and children of siblings.
        """
        static = Rule(a="*", b="*", where="rigid", reason=RuleReason.RIGID)
        kin = Rule(a="*", b="*", where="kin", reason=RuleReason.ROBWORK)
        return cls(within=True, rules=(static,) if has_setup else (static, kin))

    @classmethod
    def everything(cls) -> Self:
        """Return rules that test every pair of which neither carries the other."""
        return cls(within=True, rules=())

    @classmethod
    def nothing(cls) -> Self:
        """Return rules that test no pair, to include some."""
        return cls(between=False, rules=())

    # further rules

    def include(
        self,
        a: str,
        b: str,
        *,
        where: Where | None = None,
        reason: str = RuleReason.USER,
    ) -> Self:
        """Return the rules with pairs that are tested from now on.

        Args:
            a: Name or pattern of the links on one side.
            b: Name or pattern of the links on the other side.
            where: Which of the pairs; by default `any` if both sides are names, else
                `apart`, so that `include("arm/*", "arm/*")` leaves neighbours alone.
            reason: Why, for messages and files.

        Raises:
            ModelError: A side is neither a name nor a pattern.
        """
        check_side(a)
        check_side(b)
        if where is None:
            where = "any" if is_exact(a) and is_exact(b) else "apart"
        return self.extended([Rule(a=a, b=b, tested=True, where=where, reason=reason)])

    def exclude(
        self, a: str, b: str, *, where: Where = "any", reason: str = RuleReason.USER
    ) -> Self:
        """Return the rules with pairs that are not tested from now on.

        Arguments are as for `include`, but `where` is `any` by default.

        Raises:
            ModelError: A side is neither a name nor a pattern.
        """
        return self.extended([Rule(a=a, b=b, where=where, reason=reason)])

    def include_self(self, *manipulators: str) -> Self:
        """Return the rules that test manipulators against themselves from now on.

        All pairs of links of one manipulator are tested except those that are rigid,
        those that share a joint, and those that touch at home. Loading a URDF without
        rules does this.

        manipulators: Their names. Earlier rules of theirs alone are left out.

        Raises:
            ModelError: There are too many rules, or a name is not a text.
        """
        rules = self
        for name in manipulators:
            own = links_of(name)
            rules = rules.without_self(name).extended(
                [
                    Rule(
                        a=own, b=own, tested=True, where="apart", reason=RuleReason.SELF
                    ),
                    Rule(a=own, b=own, where="joined", reason=RuleReason.ADJACENT),
                    Rule(a=own, b=own, where="home", reason=RuleReason.DEFAULT),
                ]
            )
        return rules

    def without_self(self, manipulator: str) -> Self:
        """Return the rules without those that are about one manipulator alone."""
        prefix, own = f"{manipulator}/", links_of(manipulator)

        def is_own(side: str) -> bool:
            return side == own or (is_exact(side) and side.startswith(prefix))

        kept = tuple(r for r in self.rules if not (is_own(r.a) and is_own(r.b)))
        return msgspec.structs.replace(self, rules=kept)

    def let_touch(self, *links: str, held_by: str, part: str = "*") -> Self:
        """Return the rules with links that may touch what a link holds.

        links: Names or patterns, such as those of the fingers.
        held_by: The link whose frame holds the part.
        part: Pattern of the part's links; by default any part.

        Raises:
            ModelError: A side is neither a name nor a pattern.
        """
        touch = Touch(held_by=held_by, links=links, part=part)
        return msgspec.structs.replace(self, touches=(*self.touches, touch))

    def extended(self, rules: Iterable[Rule]) -> Self:
        """Return these rules, and further ones that override them."""
        return msgspec.structs.replace(self, rules=(*self.rules, *rules))

    def without(self, manipulator: str) -> Self:
        """Return the rules that do not name a link of a manipulator.

        Patterns stay, but for those of this manipulator alone: `manipulator/*`.
        """
        prefix, own = f"{manipulator}/", links_of(manipulator)

        def keeps(sides: Iterable[str]) -> bool:
            return not any(side == own or side.startswith(prefix) for side in sides)

        touches: list[Touch] = []
        for touch in self.touches:
            links = tuple(link for link in touch.links if keeps([link]))
            if links and keeps([touch.held_by, touch.part]):
                touches.append(msgspec.structs.replace(touch, links=links))
        rules = tuple(rule for rule in self.rules if keeps([rule.a, rule.b]))
        if len(rules) == len(self.rules) and tuple(touches) == self.touches:
            return self
        return msgspec.structs.replace(self, rules=rules, touches=tuple(touches))

    @property
    def needs_home(self) -> bool:
        """Return whether a rule is about pairs that touch at home."""
        return any(rule.where == "home" for rule in self.rules)

    @property
    def sides(self) -> tuple[str, ...]:
        """Return all names and patterns, each once."""
        sides: dict[str, None] = {}
        for rule in self.rules:
            sides[rule.a] = sides[rule.b] = None
        for touch in self.touches:
            sides.update(dict.fromkeys(touch.sides))
        return tuple(sides)

    # sending

    def to_json(self) -> str:
        """Return the rules as JSON; equal rules give equal texts."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the rules that `to_json` wrote.

        Raises:
            FormatError: The text holds no rules.
        """
        try:
            return msgspec.json.decode(text, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError, ModelError) as error:
            raise FormatError(f"This JSON holds no rules: {error}") from error

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self)
