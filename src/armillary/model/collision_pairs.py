"""Rules applied to a cell: the pairs that are tested, given the attachments."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, quote
from armillary.limits import COLLISION_PAIRS, PAIR_STEPS
from armillary.model.distinct_numbers import distinct_numbers
from armillary.model.link_pairs import PairDecision, Pairs
from armillary.model.link_pattern import REGEX, LinkName, is_exact, matches, steps
from armillary.model.loops.loop import Closure
from armillary.model.parents import nearest
from armillary.model.rules import Rule, Rules, Where
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell

__all__ = ["CollisionPairs"]

MOST_PAIRS: Final = COLLISION_PAIRS.most
MOST_STEPS: Final = PAIR_STEPS.most
"""States of regular expressions times characters of names."""

ROWS: Final = 1 << 22
"""Pairs that are looked at together, to bound the memory."""

MOST_KEPT: Final = 256

MODES: Final = {
    "fixed": "fixed to",
    "loose": "mounted on",
    "attached": "attached to",
}
"""How a base is carried, as sentences have it."""

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
FindTouching = Callable[[Pairs], Indices]
"""From pairs to those that touch at home, as positions in them, sorted."""

# which links of a cell are rigid with each other, and which carries which

NO_LINK: Final = -2


class RigidGroups:
    """The rigid groups of a cell's links as it was built, and the links with shapes.

    Only fixed mounts join links; what else a link carries is in the trees of states.

    Attributes:
        has_shapes: Which links have collision shapes.
        groups: For each link that of its rigid group which is nearest to the world, or
            -1 where the group is fixed to that.
        carriers: For each link the nearest one with shapes that carries it, or -1.
        base_groups: The groups that bases of manipulators belong to.
    """

    def __init__(self, cell: Workcell) -> None:
        """Look at the links of `cell` and at its mounts."""
        self._cell = cell
        self._tree = tree = Tree.of(cell).released()
        self.has_shapes = np.array(
            [bool(link.collision_shapes) for link in cell.links], dtype=np.bool_
        )
        loose = {tree.base_link(k) for k in tree.movable}

        def is_apart(link: int) -> bool:
            """Return whether a link may move in its parent."""
            return link in loose or bool(tree.drives[link])

        shaped: list[bool] = self.has_shapes.tolist()
        every = range(len(cell.links))
        self.groups = _indices(nearest(tree.parents, every, is_apart))
        bases = [tree.base_link(k) for k in range(len(cell.manipulators))]
        self.base_groups = distinct_numbers(self.groups[bases])
        self.carriers = _indices(
            nearest(tree.parents, tree.parents, shaped.__getitem__)
        )

    def kin(self) -> tuple[Indices, Indices]:
        """Return the parent and the grandparent of each link, as RobWork has them.

        -1 stands for the world, -2 for none. Mounts that are not fixed join nothing,
        and a frame that a base is fixed to counts as a link of its own.
        """
        tree, count = self._tree, len(self._cell.links)
        parents = _indices(tree.parents)
        padded = np.full(count + len(tree.bases) + 2, NO_LINK, dtype=np.int64)
        for k, base in enumerate(tree.bases):
            if base.mode != "fixed":
                parents[tree.base_link(k)] = NO_LINK
            elif not tree.is_link(base.on):
                parents[tree.base_link(k)] = count + k
                padded[count + k] = base.frame.link
        padded[:count] = parents
        # The last two stand for the world and for none, which have no parent.
        return parents, padded[parents]

    # what is attached

    def nearest_base(self, k: int) -> tuple[Indices, Indices]:
        """Return the links with shapes that are rigid with the base of manipulator k.

        The second array has those with no link with shapes between themselves and the
        base, whether they move or not.
        """
        start, end = self._cell.starts[k : k + 2]
        own = start + np.flatnonzero(self.has_shapes[start:end])
        base_group = self.groups[self._tree.base_link(k)]
        carriers = self.carriers[own]
        is_own = (start <= carriers) & (carriers < end)
        return own[self.groups[own] == base_group], own[~is_own]

    def bearer(self, tree: Tree, k: int) -> tuple[int, bool]:
        """Return the link with shapes that carries a base in a tree, -1 without one.

        It is the nearest one. The second value tells whether what is between the two is
        rigid.
        """
        is_rigid = True
        for link in tree.ancestors(tree.bases[k].frame.link):
            if link < 0 or self.has_shapes[link]:
                return link, is_rigid
            is_rigid = is_rigid and not tree.drives[link]
        return -1, is_rigid


def _indices(numbers: object) -> Indices:
    return np.array(numbers, dtype=np.int64)


# rules applied to a cell: the pairs that are tested, given the attachments


class _Named(NamedTuple):
    """Pairs of places, and whether they are tested; of two alike the last counts."""

    left: Indices
    right: Indices
    tested: Mask


class CollisionPairs:
    """Applies rules to a cell: once to where it was built, then to the attachments.

    Links with shapes are numbered by their sorted names, and a pair i < j of them is
    the code i n + j, so that codes are sorted as names are.
    """

    def __init__(
        self, cell: Workcell, rules: Rules, touching: FindTouching | None = None
    ) -> None:
        """Take a cell and rules whose names exist in it.

        touching: Tells which of some pairs touch at home, as positions in them; where
            it is not given, none is known to.
        """
        self.cell = cell
        self.rules = rules
        self._find_touching = touching
        self._rigid = RigidGroups(cell)
        shaped: list[int] = np.flatnonzero(self._rigid.has_shapes).tolist()
        named = [(self._link_name(number), number) for number in shaped]
        named.sort(key=lambda each: each[0].qualified)
        self.link_names = tuple(name for name, _ in named)
        self.names = tuple(name.qualified for name in self.link_names)
        self._numbers = np.array([number for _, number in named], dtype=np.int64)
        self._places = {number: place for place, (_, number) in enumerate(named)}
        self._owners = np.array(cell.owners, dtype=np.int64)[self._numbers]
        self.groups = self._rigid.groups[self._numbers]
        self._carriers = self._rigid.carriers[self._numbers]
        self._selected: dict[str, Indices] = {}
        self._known: dict[tuple[tuple[int, int, str], ...], Pairs] = {}
        self._untested: tuple[Pairs, tuple[str, ...]] | None = None
        self._check_work()

    def _link_name(self, number: int) -> LinkName:
        owner = self.cell.manipulators[self.cell.owners[number]]
        return LinkName(owner.name, self.cell.links[number].name)

    def pairs(self, tree: Tree) -> Pairs:
        """Return the pairs that are tested while bases are attached as in a tree.

        Raises:
            ModelError: There are too many pairs.
        """
        bases = ((k, tree.bases[k]) for k in tree.carried_bases)
        attached = tuple((k, base.frame.link, base.mode) for k, base in bases)
        known = self._known.get(attached)
        if known is None:
            # Rules decide once, for the cell as it was built. Then what bases are
            # attached to removes pairs, and rules may bring adjacent ones back.
            touching, adjacent = self._touching(tree)
            codes = self._tested
            removed = np.array([*touching, *adjacent], dtype=np.int64)
            codes = codes[~np.isin(codes, removed)] if len(removed) else codes
            kept = [code for code in adjacent if self._ruled(code, adjacent).tested]
            codes = distinct_numbers(np.append(codes, np.array(kept, dtype=np.int64)))
            why = partial(
                self._decision, tree=tree, touching=touching, adjacent=adjacent
            )
            known = Pairs(self.names, codes, self._code_of, why)
            if len(self._known) >= MOST_KEPT:
                self._known.clear()
            self._known[attached] = known
        return known

    def _code_of(self, a: str, b: str) -> int | None:
        """Return the code of two qualified names of links with shapes, or None."""
        places = [self._places_by_name.get(name) for name in (a, b)]
        i, j = places
        if i is None or j is None or i == j:
            return None
        return self._code(i, j)

    @cached_property
    def _places_by_name(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    def _code(self, i: int, j: int) -> int:
        return min(i, j) * len(self.names) + max(i, j)

    # sides

    def _check_work(self) -> None:
        """Refuse expressions and names that would take minutes to compare."""
        sides = [side for side in self.rules.sides if side.startswith(REGEX)]
        if (
            sum(steps(side, len(name)) for side in sides for name in self.names)
            > MOST_STEPS
        ):
            raise ModelError(
                f"The {len(sides)} regular expressions of the rules take too long to "
                f"compare with {len(self.names)} names; name the links instead."
            )

    def _select(self, side: str) -> Indices:
        """Return the places of the links that a side names, sorted."""
        selected = self._selected.get(side)
        if selected is None:
            if is_exact(side):
                at = self.cell.frame(side)
                number = at.link
                places = [self._places[number]] if number in self._places else []
            else:
                names = enumerate(self.link_names)
                places = [place for place, name in names if matches(side, name)]
            selected = np.array(places, dtype=np.int64)
            self._selected[side] = selected
        return selected

    def _is_of(self, side: str, number: int) -> bool:
        """Return whether a side names a link, one without shapes perhaps."""
        if is_exact(side):
            at = self.cell.frame(side)
            return number == at.link
        return matches(side, self._link_name(number))

    # where the cell was built

    @cached_property
    def _tested(self) -> Indices:
        """Return the codes of the pairs that the rules have tested."""
        count = len(self.names)
        step = max(1, ROWS // max(1, count))
        codes: list[Indices] = []
        total = 0
        for start in range(0, count, step):
            rows = np.arange(start, min(start + step, count))
            i, j = np.nonzero(np.triu(self._block(rows), start + 1))
            codes.append((i + start) * count + j)
            total += len(i)
            if total > MOST_PAIRS:
                raise ModelError(
                    f"The rules of cell {quote(self.cell.name)} leave more than "
                    f"{MOST_PAIRS} pairs of its {count} links to test; exclude some."
                )
        return np.concatenate(codes or [np.empty(0, dtype=np.int64)])

    def _block(self, rows: Indices) -> Mask:
        """Return which pairs of some links with all are tested, shape (k, n)."""
        # Later rules override earlier ones: all are applied in order, to a block of
        # rows.
        same = self._owners[rows][:, None] == self._owners[None, :]
        rules = self.rules
        tested = np.where(same, rules.within, rules.between).astype(np.bool_)
        for step in self._plan:
            if isinstance(step, Rule):
                a, b = self._select(step.a), self._select(step.b)
                self._apply(step, a, b, rows, tested)
                if step.a != step.b:
                    self._apply(step, b, a, rows, tested)
                continue
            here = (step.left >= rows[0]) & (step.left <= rows[-1])
            tested[step.left[here] - rows[0], step.right[here]] = step.tested[here]
        return tested

    def _apply(
        self, rule: Rule, left: Indices, right: Indices, rows: Indices, tested: Mask
    ) -> None:
        """Apply a rule to those of its pairs whose left link is one of the rows."""
        begin, end = np.searchsorted(left, [rows[0], rows[-1] + 1])
        left = left[begin:end]
        if not (len(left) and len(right)):
            return
        is_whole = len(left) == len(rows) and len(right) == len(self.names)
        cells: Any = ... if is_whole else np.ix_(left - rows[0], right)
        if rule.where == "any":
            tested[cells] = rule.tested
        else:
            about = self._where(rule.where)(left[:, None], right[None, :])
            tested[cells] = np.where(about, rule.tested, tested[cells])

    @cached_property
    def _named(self) -> dict[int, int]:
        """Return the last of the rules that name a pair, by the code of the pair."""
        return {
            self._code(a, b): place
            for place, rule in enumerate(self.rules.rules)
            if _names_pair(rule)
            for a in self._select(rule.a).tolist()
            for b in self._select(rule.b).tolist()
        }

    @cached_property
    def _unnamed(self) -> tuple[int, ...]:
        """Return the other rules, the last first."""
        rules = list(enumerate(self.rules.rules))
        return tuple(k for k, rule in reversed(rules) if not _names_pair(rule))

    @cached_property
    def _plan(self) -> tuple[Rule | _Named, ...]:
        """Return the rules in order, those in a row that name two links as one step."""
        steps: list[Rule | _Named] = []
        run: list[tuple[int, int, bool]] = []

        def close() -> None:
            if run:
                steps.append(_Named(*map(np.array, zip(*run, strict=True))))
                run.clear()

        for rule in self.rules.rules:
            if not _names_pair(rule):
                close()
                steps.append(rule)
                continue
            for a in self._select(rule.a).tolist():
                for b in self._select(rule.b).tolist():
                    run.append((min(a, b), max(a, b), rule.tested))
        close()
        return tuple(steps)

    def _where(self, where: Where) -> Callable[[Indices, Indices], Mask]:
        """Return what tells of pairs of places whether a rule is about them."""
        return {
            "any": self._is_pair,
            "rigid": self._is_rigid,
            "adjacent": self._is_adjacent,
            "apart": self._is_apart,
            "joined": self._is_joined,
            "home": self._is_home,
            "kin": self._is_kin,
        }[where]

    def _is_pair(self, i: Indices, j: Indices) -> Mask:
        return i != j

    def _is_rigid(self, i: Indices, j: Indices) -> Mask:
        return self.groups[i] == self.groups[j]

    def _is_adjacent(self, i: Indices, j: Indices) -> Mask:
        numbers, carriers = self._numbers, self._carriers
        return (carriers[i] == numbers[j]) | (carriers[j] == numbers[i])

    def _is_apart(self, i: Indices, j: Indices) -> Mask:
        return ~(self._is_rigid(i, j) | self._is_adjacent(i, j))

    def _is_joined(self, i: Indices, j: Indices) -> Mask:
        joints, places = self._joints, self._numbers
        is_next = (joints[i] == places[j]) | (joints[j] == places[i])
        bodies, groups = self._bodies, self.groups
        is_same = (bodies[i] == groups[j]) | (bodies[j] == groups[i])
        return is_next | is_same

    @cached_property
    def _joints(self) -> Indices:
        """Return for each link the one with shapes that carries its rigid group."""
        return np.where(
            self.groups >= 0, self._rigid.carriers[self.groups], NO_LINK
        ).astype(np.int64)

    @cached_property
    def _bodies(self) -> Indices:
        """Return the rigid group of that link, none where a base is in it."""
        joints, groups = self._joints, self._rigid.groups
        bodies = np.where(joints >= 0, groups[np.maximum(joints, 0)], NO_LINK)
        return np.where(np.isin(bodies, self._rigid.base_groups), NO_LINK, bodies)

    def _is_home(self, i: Indices, j: Indices) -> Mask:
        codes = np.minimum(i, j) * len(self.names) + np.maximum(i, j)
        return np.isin(codes, self._home_codes)

    @cached_property
    def _home_codes(self) -> Indices:
        """Return the codes of the pairs that are left out since they touch at home."""
        if self._find_touching is None or not self.rules.needs_home:
            return np.empty(0, dtype=np.int64)
        others = tuple(r for r in self.rules.rules if r.where != "home")
        rules = msgspec.structs.replace(self.rules, rules=others)
        tested = CollisionPairs(self.cell, rules).pairs(Tree.of(self.cell))
        codes = tested.indices @ np.array([len(self.names), 1])
        return codes[self._find_touching(tested)]

    @cached_property
    def home_pairs(self) -> dict[tuple[str, str], Rule]:
        """Return the pairs that a rule leaves out because they touch at home.

        Without such rules they are tested, so the last of these decides.
        """
        count = len(self.names)
        tested = self.pairs(Tree.of(self.cell)).indices @ np.array([count, 1])
        left = self._home_codes[~np.isin(self._home_codes, tested)]
        rules: dict[int, Rule] = {}
        for rule in reversed(self.rules.rules):
            if rule.where == "home":
                a, b = self._mask(rule.a), self._mask(rule.b)
                i, j = np.divmod(left, count)
                is_named = (a[i] & b[j]) | (a[j] & b[i])
                codes: list[int] = left[is_named].tolist()
                rules.update(dict.fromkeys(codes, rule))
                left = left[~is_named]
        pairs = (divmod(code, count) for code in sorted(rules))
        return {(self.names[i], self.names[j]): rules[i * count + j] for i, j in pairs}

    def _mask(self, side: str) -> Mask:
        """Return which links a side names, shape (n,)."""
        mask = np.zeros(len(self.names), np.bool_)
        mask[self._select(side)] = True
        return mask

    def untested_manipulators(self, pairs: Pairs) -> tuple[str, ...]:
        """Return the manipulators of which no pair is tested, though no rule says so.

        Only those count that have two links with shapes that may meet: neither rigid
        with each other nor joined.

        pairs: What is tested.
        """
        if not self.rules.between:  # such rules list what they test
            return ()
        # Checks of states that attach the same ask again, of the same pairs.
        if self._untested is None or self._untested[0] is not pairs:
            self._untested = pairs, self._find_untested(pairs)
        return self._untested[1]

    def _find_untested(self, pairs: Pairs) -> tuple[str, ...]:
        a, b = self._owners[pairs.indices].T
        counts = np.bincount(self._owners, minlength=len(self.cell.manipulators))
        counts[a[a == b]] = 0  # some pair of theirs is tested
        several: list[int] = np.flatnonzero(counts > 1).tolist()
        return tuple(
            self.cell.manipulators[k].name
            for k in several
            if self._is_left_out(np.flatnonzero(self._owners == k))
        )

    def are_joined(self, tree: Tree, pairs: Pairs) -> Mask:
        """Return which pairs share a joint, or a closure, in a tree: shape (k,)."""
        i, j = pairs.indices.T
        _, adjacent = self._touching(tree)
        codes = i * len(self.names) + j
        return self._is_joined(i, j) | np.isin(codes, list(adjacent))

    def _is_left_out(self, own: Indices) -> bool:
        """Return whether no rule is about some pair of links that may meet."""
        if self._covers(own):
            return False
        i, j = own[np.stack(np.triu_indices(len(own), 1))]
        may_meet = self._is_apart(i, j) & ~self._is_joined(i, j)
        codes: list[int] = (i * len(self.names) + j)[may_meet].tolist()
        return any(self._ruled(code, ()).rule is None for code in codes)

    def _covers(self, own: Indices) -> bool:
        """Return whether one rule is about all pairs of some links that may meet."""
        return any(
            bool(np.isin(own, self._select(rule.a)).all())
            and bool(np.isin(own, self._select(rule.b)).all())
            for rule in self.rules.rules
            if rule.where in {"any", "apart"} and not _names_pair(rule)
        )

    def _is_kin(self, i: Indices, j: Indices) -> Mask:
        numbers, (parents, grandparents) = self._numbers, self._kin
        is_child = (parents[i] == numbers[j]) | (parents[j] == numbers[i])
        has_parents = (parents[i] > -2) & (parents[j] > -2)
        is_nephew = (grandparents[i] == parents[j]) | (grandparents[j] == parents[i])
        return is_child | (has_parents & is_nephew)

    @cached_property
    def _kin(self) -> tuple[Indices, Indices]:
        parents, grandparents = self._rigid.kin()
        return parents[self._numbers], grandparents[self._numbers]

    # attachments

    def _touching(self, tree: Tree) -> tuple[dict[int, int], frozenset[int]]:
        """Return the pairs that touch because one carries the other.

        The first value has their codes, with the manipulator that is carried, the
        second the codes of the other pairs that are adjacent because one link, or what
        carries it, is carried by the other, or because a closure joins them.
        """
        touching: dict[int, int] = {}
        adjacent: set[int] = set()
        for k in range(len(tree.bases)):
            bearer, is_rigid = self._rigid.bearer(tree, k)
            place = self._places.get(bearer)
            if place is None:
                continue
            rigid, nearest = (
                [self._code(self._places[link], place) for link in links.tolist()]
                for links in self._rigid.nearest_base(k)
            )
            adjacent.update(nearest)
            if is_rigid:
                touching.update(dict.fromkeys(rigid, k))
        for loop, a, b, _ in tree.cell.joints.placed_loops:
            if isinstance(loop, Closure):
                adjacent.update(self._joined(a.link, b.link))
        for k in tree.carried_bases:
            for i, j in self._let_touch(k, tree.bases[k].frame.link):
                touching.setdefault(self._code(i, j), k)
        return touching, frozenset(adjacent - touching.keys())

    def _joined(self, a: int, b: int) -> Iterator[int]:
        """Yield the code of two links, if both have shapes."""
        i, j = self._places.get(a), self._places.get(b)
        if i is not None and j is not None:
            yield self._code(i, j)

    def _let_touch(self, k: int, holder: int) -> Iterator[tuple[int, int]]:
        """Yield the pairs that may touch while a link holds manipulator k."""
        own = np.flatnonzero(self._owners == k)
        for touch in self.rules.touches:
            if not self._is_of(touch.held_by, holder):
                continue
            parts = np.intersect1d(own, self._select(touch.part))
            for side in touch.links:
                for i in parts.tolist():
                    for j in self._select(side).tolist():
                        if i != j:
                            yield i, j

    # reasons

    def _decision(
        self,
        a: str,
        b: str,
        *,
        tree: Tree,
        touching: Mapping[int, int],
        adjacent: Container[int],
    ) -> PairDecision:
        """Return whether a pair is tested, and why."""
        numbers = sorted(self._number(name) for name in (a, b))
        if numbers[0] == numbers[1]:
            return PairDecision(False, "they are one link")
        for number in numbers:
            if number not in self._places:
                name = quote(tree.name(number))
                return PairDecision(False, f"{name} has no shapes")
        i, j = (self._places[number] for number in numbers)
        code = self._code(i, j)
        carried = touching.get(code)
        if carried is not None:
            part = quote(self.cell.manipulators[carried].name)
            base = tree.bases[carried]
            reason = f"{part} is {MODES[base.mode]} {quote(tree.name(base.frame.link))}"
            return PairDecision(False, reason, is_carried=True)
        return self._ruled(code, adjacent)

    def _number(self, name: str) -> int:
        at = self.cell.frame(name)
        if at.link < 0:
            raise ModelError("The world is not a link; nothing is tested against it.")
        return at.link

    def _ruled(self, code: int, adjacent: Container[int]) -> PairDecision:
        """Return what the last rule about a pair says, or else the default.

        adjacent: Codes of pairs that the state makes adjacent.
        """
        i, j = divmod(code, len(self.names))
        named = self._named.get(code, -1)
        for place in self._unnamed:
            if place < named:
                break
            rule = self.rules.rules[place]
            a, b = self._select(rule.a), self._select(rule.b)
            is_named = (_has(a, i) and _has(b, j)) or (_has(a, j) and _has(b, i))
            if is_named and self._is_about(rule.where, i, j, code in adjacent):
                named = place
                break
        if named >= 0:
            rule = self.rules.rules[named]
            return PairDecision(rule.tested, rule.reason, rule)
        if self._owners[i] == self._owners[j]:
            return PairDecision(self.rules.within, "links of one manipulator")
        return PairDecision(self.rules.between, "links of two manipulators")

    def _is_about(self, where: Where, i: int, j: int, is_adjacent: bool) -> bool:
        """Return whether a rule that names both links is about their pair."""
        if is_adjacent and where in {"adjacent", "apart", "joined"}:
            return where != "apart"
        return bool(self._where(where)(np.array([i]), np.array([j]))[0])


def _names_pair(rule: Rule) -> bool:
    """Return whether a rule is about one pair, whatever joins that."""
    return rule.where == "any" and is_exact(rule.a) and is_exact(rule.b)


def _has(places: Indices, place: int) -> bool:
    k = int(np.searchsorted(places, place))
    return k < len(places) and int(places[k]) == place
