"""RobWork's collision and proximity setups, as rules and back."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import armillary as arm
from armillary import Cell, Link, Manipulator, Mount, Rules
from armillary.errors import FormatError
from armillary.formats import registry
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.robwork.frames import frame_names
from armillary.formats.xml import parse
from armillary.model.joints import Revolute
from armillary.model.rules import Rule
from armillary.model.shapes import Box
from armillary.model.workcell import Workcell
from work import counted

BOX = Box(size=(0.1, 0.1, 0.1))
SHAPE = '<Drawable name="d"><Box x="1" y="1" z="1"/></Drawable>'


def joint(name: str) -> str:
    return f'<Joint name="{name}" type="Revolute">{SHAPE}</Joint>'


DEVICE = (
    '<SerialDevice name="A">'
    f'<Frame name="Base">{SHAPE}</Frame>{joint("J1")}{joint("J2")}'
    f'<SerialChain name="c">{joint("J3")}{{chain}}</SerialChain>'
    '<Frame name="TCP"/>{device}</SerialDevice>'
)
WORKCELL = (
    f'<WorkCell name="w"><Frame name="Table">{SHAPE}</Frame>{DEVICE}'
    f'<Frame name="Wall" refframe="WORLD">{SHAPE}</Frame>'
    f'<Frame name="Box" type="Movable" daf="true" refframe="WORLD">{SHAPE}</Frame>'
    "{cell}</WorkCell>"
)


def proximity(*rules: str, flags: str = "") -> str:
    return f"<ProximitySetup {flags}>{''.join(rules)}</ProximitySetup>"


def include(a: str, b: str) -> str:
    return f'<Include PatternA="{a}" PatternB="{b}"/>'


def exclude(a: str, b: str) -> str:
    return f'<Exclude PatternA="{a}" PatternB="{b}"/>'


def collision(*pairs: tuple[str, str], more: str = "") -> str:
    inner = "".join(f'<FramePair first="{a}" second="{b}"/>' for a, b in pairs)
    return f"<CollisionSetup><Exclude>{inner}</Exclude>{more}</CollisionSetup>"


def load(folder: Path, **setups: str) -> tuple[Cell, Report]:
    """Load the workcell with setups at its places: cell, device, chain."""
    places = {"cell": "", "device": "", "chain": ""}
    for name, text in setups.items():
        (folder / f"{name}.xml").write_text(text)
        place = name.split("_")[0]
        kind = "CollisionSetup" if "CollisionSetup" in text else "ProximitySetup"
        places[place] += f'<{kind} file="{name}.xml"/>'
    path = folder / "w.wc.xml"
    path.write_text(WORKCELL.format(**places))
    cell, report = registry.read(path)
    return Cell.of(cell), report


def found_in(cell: Cell) -> set[str]:
    """Pairs as `J1 J2`, by the last parts of the names."""

    def short(name: str) -> str:
        return re.split(r"[/.]", name)[-1]

    return {" ".join(sorted(map(short, pair))) for pair in cell.pairs(cell.home)}


@pytest.fixture(name="everything")
def _everything(tmp_path: Path) -> set[str]:
    """All pairs but those that never move in each other."""
    found = found_in(load(tmp_path, cell=proximity())[0])
    assert len(found) == 7 * 6 // 2 - 3
    return found


# What it means


def test_without_a_setup_relatives_are_left_out(tmp_path: Path):
    cell, report = load(tmp_path)
    assert cell.rules == Rules.robwork()
    assert "J1 J2" not in found_in(cell)
    assert {"J1 J3", "Box J1", "Box Wall"} <= found_in(cell)
    assert not report.diagnostics


def test_collision_setups_exclude_pairs(tmp_path: Path, everything: set[str]):
    device = collision(("J1", "J2"), ("c.J3", "Base"), more="<ExcludeStaticPairs/>")
    whole = collision(("A.J2", "Wall"))
    cell, report = load(tmp_path, device=device, cell=whole)
    assert everything - found_in(cell) == {"J1 J2", "Base J3", "J2 Wall"}
    assert not report.diagnostics
    why = cell.pairs(cell.home).why("J1", "J2")
    assert not why.tested
    assert why.reason == "robwork"
    assert why.rule is not None
    assert {why.rule.a, why.rule.b} == {"A/J1", "A/J2"}
    assert cell.pairs(cell.home).why("Table", "Wall").reason == "rigid"


@pytest.mark.parametrize(
    ("a", "b", "gone"),
    [
        ("A.J1", "A.J2", {"J1 J2"}),
        ("A.J2", "A.J1", {"J1 J2"}),
        ("A.J*", "A.J*", {"J1 J2"}),
        ("A.*", "A.*", {"J1 J2", "J1 J3", "J2 J3", "Base J1", "Base J2", "Base J3"}),
        ("A.J?", "Wall", {"J1 Wall", "J2 Wall"}),
        ("A.c.*", "W*", {"J3 Wall"}),
        (
            "*",
            "Box",
            {"Base Box", *(f"Box {n}" for n in ("J1", "J2", "J3", "Table", "Wall"))},
        ),
        ("REGEX.*[12]", "REGEX(Wall|Box)", {"J1 Wall", "J2 Wall", "Box J1", "Box J2"}),
        ("J1", "A.J2", set[str]()),
        ("A.TCP", "A.J1", set[str]()),
    ],
)
def test_patterns(a: str, b: str, gone: set[str], tmp_path: Path, everything: set[str]):
    cell, _ = load(tmp_path, cell=proximity(exclude(a, b)))
    assert everything - found_in(cell) == gone


@pytest.mark.parametrize("pattern", ["J?", "REGEX^J[12]$", "J*"])
def test_patterns_of_a_device_have_its_name_in_front(
    pattern: str, tmp_path: Path, everything: set[str]
):
    setup = proximity(exclude(pattern, pattern), exclude("c.*", pattern))
    cell, report = load(tmp_path, device=setup)
    assert everything - found_in(cell) == {"J1 J2", "J1 J3", "J2 J3"}
    assert not report.diagnostics
    cell, _ = load(tmp_path, chain=proximity(exclude("J3", "*"), exclude("*", "A.J1")))
    assert found_in(cell) == everything


def test_the_last_rule_counts(tmp_path: Path, everything: set[str]):
    order = proximity(exclude("*", "*"), include("A.J1", "Wall"), exclude("*", "Wall"))
    assert found_in(load(tmp_path, cell=order)[0]) == set()
    order = proximity(exclude("*", "*"), exclude("*", "Wall"), include("A.J1", "Wall"))
    assert found_in(load(tmp_path, cell=order)[0]) == {"J1 Wall"}
    # collision setups first, then those of devices
    both = {
        "cell": proximity(include("A.J1", "A.J2")),
        "device": proximity(exclude("J1", "J2"), include("J1", "c.J3")),
        "device_2": collision(("J1", "c.J3")),
    }
    assert found_in(load(tmp_path, **both)[0]) == everything


def test_static_pairs_may_be_included(tmp_path: Path, everything: set[str]):
    cell, _ = load(tmp_path, cell=proximity(include("Table", "Wall")))
    assert found_in(cell) - everything == {"Table Wall"}


def test_flags_hold_before_all_rules(tmp_path: Path, everything: set[str]):
    nothing = proximity(include("A.J1", "Wall"), flags='UseIncludeAll="false"')
    cell, report = load(tmp_path, cell=nothing, device=proximity(include("J1", "J2")))
    assert found_in(cell) == {"J1 J2", "J1 Wall"}
    assert [d.code for d in report.diagnostics] == ["flag"]
    own = proximity(flags='UseIncludeAll="false"')
    cell, _ = load(tmp_path, device=own)
    assert {p for p in everything - found_in(cell) if "J1" in p} == {
        "Base J1", "J1 J2", "J1 J3"
    }  # fmt: skip
    static = proximity(flags='UseExcludeStaticPairs="false"')
    cell, _ = load(tmp_path, cell=static)
    assert found_in(cell) - everything == {"Table Wall", "Base Wall"}


# Faults


@pytest.mark.parametrize(
    ("setup", "code"),
    [
        (proximity("<Incldue/>"), "unknown-element"),
        (proximity('<Exclude PatternA="x"/>'), "missing-attribute"),
        (proximity(exclude("", "x")), "missing-name"),
        (proximity(exclude("REGEX(", "*")), "bad-pattern"),
        (proximity(exclude("REGEX(?=a)", "*")), "bad-pattern"),
        (proximity(flags='UseIncludeAll="1"'), "unknown-value"),
        (collision(more="<Exclud/>"), "unknown-element"),
        ("<CollisionSetup><Exclude><FramePair/></Exclude></CollisionSetup>", "missing"),
        ("<Setup><ProximitySetup/></Setup>", "wrong-root"),
        ("<ProximitySetup>", "xml"),
        ("<!DOCTYPE x><ProximitySetup/>", "doctype"),
        ("", "xml"),
    ],
)
def test_faulty_setups_are_refused(setup: str, code: str, tmp_path: Path):
    with pytest.raises(FormatError) as caught:
        load(tmp_path, cell=setup)
    (found, *_) = caught.value.diagnostics
    assert found.severity is Severity.ERROR
    assert code in found.code
    assert found.place.path == str(tmp_path / "cell.xml")
    assert found.place.line == 1


def test_what_has_no_effect_is_reported(tmp_path: Path, everything: set[str]):
    odd = proximity(exclude("A.J9", "*"), exclude("B.*", "*"), exclude("A.TCP", "*"))
    more = "<Volatile>Wall</Volatile>"
    cell, report = load(tmp_path, cell=odd, cell_2=collision(more=more))
    assert found_in(cell) == everything
    found = [str(d) for d in report.diagnostics]
    assert [d.code for d in report.diagnostics] == [
        "unknown-frame", "no-match", "not-kept"
    ]  # fmt: skip
    assert "there is no frame 'A.J9'; its rules are left out. Did you mean" in found[0]
    assert "'B.*' matches no link" in found[1]
    assert "<Volatile>" in found[2]


def test_missing_setups_are_reported_and_kept(tmp_path: Path):
    path = tmp_path / "x.wc.xml"
    for file, code in (
        ("none.xml", "reference-missing"),
        ("../../etc/passwd", "reference-outside"),
        ("/etc/passwd", "reference-outside"),
        (".", "reference"),
    ):
        path.write_text(
            f'<WorkCell name="w"><ProximitySetup file="{file}"/></WorkCell>'
        )
        cell, report = registry.read(path)
        assert cell.rules == Rules.robwork()
        assert code in report.diagnostics[0].code
        assert [p.name for p in cell.properties] == ["robwork.ProximitySetup"]
        again = tmp_path / "again.wc.xml"
        registry.save(cell, again)
        assert registry.read(again)[0] == cell


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (exclude("*", "*") * 200_000, "xml-limit"),
        ("<Exclude>" * 20_000, "xml-limit"),
        (exclude("A.*", "*") * 100_001, "too-many-rules"),
        ("".join(exclude(f"*{k}*1", "*") for k in range(5_000)), ""),
        ("".join(exclude(f"REGEX(a*)*{k}|A.*", "*") for k in range(5_000)), ""),
        (exclude(f"REGEX{'(a?){9}' * 90}", "*" * 3000), "bad-pattern"),
    ],
    ids=["elements", "depth", "rules", "patterns", "expressions", "states"],
)
def test_hostile_setups_are_little_work(body: str, code: str, tmp_path: Path):
    with counted() as work:
        try:
            load(tmp_path, cell=f"<ProximitySetup>{body}</ProximitySetup>")
        except FormatError as error:
            assert code in error.diagnostics[0].code
        else:
            assert not code
    assert work.lines < 40_000_000


@pytest.mark.thorough
def test_many_files_are_bounded(tmp_path: Path):
    (tmp_path / "p.xml").write_text(proximity(exclude("*", "*") * 1000))
    many = '<ProximitySetup file="p.xml"/>' * 2000
    path = tmp_path / "x.wc.xml"
    path.write_text(f'<WorkCell name="w">{many}</WorkCell>')
    with pytest.raises(FormatError, match=r"more than 1000 setups|elements"):
        registry.read(path)


# Back again


def robot(name: str) -> Manipulator:
    links = [Link(name="base", collisions=(BOX,))]
    for k in range(1, 5):
        turn = Revolute(axis=(0, 0, 1))
        links.append(
            Link(name=f"l{k}", parent=links[-1].name, joint=turn, collisions=(BOX,))
        )
    return Manipulator(name=name, links=tuple(links))


LAB = Workcell(
    name="lab",
    manipulators=(
        robot("a"),
        robot("b"),
        Manipulator(name="peg", links=(Link(name="peg", collisions=(BOX,)),)),
    ),
    mounts=(Mount(manipulator="b", pose=arm.Pose.translation(1, 0, 0)),),
)

SETUP = Rules.robwork(has_setup=True)
RULES = {
    "none": SETUP,
    "names": SETUP.exclude("a/l1", "a/l3").exclude("b/l1", "peg"),
    "patterns": SETUP.exclude("a/*", "a/*").extended(
        [Rule(a="a/l*", b="a/l4", tested=True)]
    ),
    "bare": SETUP.exclude("*", "peg").exclude("l*", "REGEXpeg|base"),
    "regular": SETUP.exclude("REGEXa/l[12]", "REGEX[ab]/base"),
    "actin": Rules.actin(),
    "everything": Rules.everything(),
    "nothing": Rules.nothing().include("a/l4", "b/*"),
    "within": Rules().include("a/*", "a/*"),
    "kin": Rules.robwork().exclude("peg", "a/*"),
}


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_rules_come_back_as_the_same_pairs(rules: Rules, tmp_path: Path):
    cell = Cell.of(LAB).replace(rules=rules)
    report = registry.save(cell.workcell, tmp_path / "lab.wc.xml")
    assert (tmp_path / "lab.prox.xml").is_file()
    assert not report.count(Severity.WARNING)
    again = Cell.of(registry.read(tmp_path / "lab.wc.xml")[0])
    assert set(again.pairs(again.home)) == set(cell.pairs(cell.home))
    first = (tmp_path / "lab.prox.xml").read_bytes()
    registry.save(again.workcell, tmp_path / "lab.wc.xml")
    assert (tmp_path / "lab.prox.xml").read_bytes() == first


def test_patterns_stay_patterns(tmp_path: Path):
    cell = Cell.of(LAB).replace(rules=RULES["patterns"])
    registry.save(cell.workcell, tmp_path / "lab.wc.xml")
    root = parse((tmp_path / "lab.prox.xml").read_bytes(), "x")
    assert [(c.name, dict(c.attributes)) for c in root.children] == [
        ("Exclude", {"PatternA": "a.*", "PatternB": "a.*"}),
        ("Include", {"PatternA": "a.l*", "PatternB": "a.l4"}),
    ]
    assert registry.read(tmp_path / "lab.wc.xml")[0].rules.rules[-2].a == "a/*"


def test_what_a_setup_does_not_hold_is_reported(tmp_path: Path):
    rules = SETUP.exclude("a/l1", "a/l3", reason="never").let_touch(
        "a/l4", held_by="a/l3"
    )
    cell = Cell.of(LAB).replace(rules=rules)
    report = registry.save(cell.workcell, tmp_path / "lab.wc.xml")
    assert [d.message for d in report.diagnostics if d.code == "not-kept"] == [
        "what may touch an attached part is not kept",
        "the reason of a rule of collisions is not kept",
    ]
    listed = cell.replace(rules=Rules().exclude("a/l1", "b/l3", reason="never"))
    report = registry.save(listed.workcell, tmp_path / "lab.wc.xml")
    assert [d.code for d in report.diagnostics] == ["pairs-listed", "not-kept"]
    with pytest.raises(FormatError, match="cannot hold all of cell 'lab'"):
        registry.save(cell.workcell, tmp_path / "other.wc.xml", lossless=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lab.prox.xml", "lab.wc.xml"]


def test_one_file_alone_has_no_place_for_rules():
    cell = Cell.of(LAB).replace(rules=RULES["names"])
    data, report = registry.write(cell.workcell, format="robwork")
    assert b"ProximitySetup" not in data
    assert "which pairs of links are tested for collision is not kept" in [
        d.message for d in report.diagnostics
    ]
    data, report = registry.write(LAB, format="robwork")
    assert not report.count(Severity.WARNING)


# RobWork's own files


@pytest.fixture(name="robwork", scope="module")
def _robwork(shared: Path) -> Path:
    folder = shared / "data" / "robwork"
    if not folder.is_dir():
        pytest.skip(f"no reference data: {folder} is absent")
    return folder


WITH_SETUPS = (
    "ModelData/XMLDevices/Fanuc-LRM200i/fanuc_lrm200i.xml",
    "ModelData/XMLDevices/Kuka_kr16/KukaKR16.xml",
    "ModelData/XMLDevices/Mitsubishi_PA10/pa10_schilling.xml",
    "ModelData/XMLDevices/SchunkHand/SchunkHand_udep.xml",
    "ModelData/XMLScenes/PA10atConveyor/Scene.xml",
    "ModelData/XMLScenes/RobotWithHand/Workcell.xml",
    "ModelData/XMLScenes/SensorTestScene/SimpleWorkcell.xml",
    "testfiles/MultiRobotDemo/Scene.wc.xml",
    "testfiles/SchunkHand/SchunkHand.xml",
    "testfiles/devices/Robotiq-2-finger-85/robotiq.wc.xml",
    "testfiles/simple/workcell.wc.xml",
    "testfiles/workcells/simple_wc/SimpleWorkcell.wc.xml",
    "testfiles/workcells/simple_wc/SimpleWorkcellUsingSerializedProx.wc.xml",
)


def setups_of(path: Path, scope: str = "") -> list[tuple[str, str, Path]]:
    """Kind, prefix and file of each setup, found by the text of the files."""
    found: list[tuple[str, str, Path]] = []
    scopes: list[str] = []
    text = re.sub(r"<!--.*?-->", "", path.read_text(errors="replace"), flags=re.DOTALL)
    tags = re.finditer(
        r"<(/?)(SerialDevice|TreeDevice|ParallelDevice|SerialChain|Include|"
        r"CollisionSetup|ProximitySetup)\b([^>]*?)(/?)>",
        text,
    )
    for closing, kind, attributes, alone in (m.groups() for m in tags):
        values = dict(re.findall(r'(\w+)\s*=\s*"([^"]*)"', attributes))
        if kind == "Include":
            inner = path.parent / values["file"]
            found += setups_of(inner, "".join([scope, *scopes]))
        elif kind.endswith("Setup"):
            prefix = "".join([scope, *scopes])
            found.append((kind, prefix, path.parent / values["file"]))
        elif closing:
            scopes.pop()
        elif not alone:
            scopes.append(f"{values['name']}.")
    return found


def excluded(setups: list[tuple[str, str, Path]]) -> list[tuple[str, str, bool]]:
    """The rules of all files as regular expressions, in RobWork's order."""
    found: list[tuple[str, str, bool]] = []
    order = sorted(setups, key=lambda each: (each[0] != "CollisionSetup", not each[1]))
    for kind, prefix, file in order:
        text = re.sub(r"<!--.*?-->", "", file.read_text(), flags=re.DOTALL)
        names = r'"([^"]*)"[^>]*?="([^"]*)"'
        verb = "FramePair" if kind == "CollisionSetup" else "Include|Exclude"
        for tag, a, b in re.findall(rf"<({verb})\b[^>]*?={names}", text):
            sides = [re.escape(prefix + each).replace(r"\*", ".*") for each in (a, b)]
            found.append((sides[0], sides[1], tag == "Include"))
    return found


Poses = dict[str, npt.NDArray[np.float64]]


def is_rigid(a: str, b: str, loose: set[str], states: list[Poses]) -> bool:
    """Whether two links stay as they are to each other, told from poses."""
    owners = {a.split("/", maxsplit=1)[0], b.split("/", maxsplit=1)[0]}
    if len(owners) == 2 and owners & loose:
        return False
    first, second = (np.linalg.inv(poses[a]) @ poses[b] for poses in states)
    return bool(np.allclose(first, second, atol=1e-9))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", WITH_SETUPS)
def test_files_of_robwork_agree_with_its_way(name: str, robwork: Path):
    """An own reading of the files: all pairs, less rigid ones, then each rule."""
    path = robwork / name
    cell = Cell.of(registry.read(path, folders=[robwork])[0])
    rules = excluded(setups_of(path))
    assert rules
    full = {own: theirs for theirs, own in frame_names(cell.workcell).items()}
    full["environment/WORLD"] = "WORLD"
    loose = {m.manipulator for m in cell.mounts if not m.bolted}
    lower, upper = (np.clip(each, -1.0, 1.0) for each in cell.limits)
    drawn = np.random.default_rng(3).uniform(lower, upper, (2, len(lower)))
    if cell.passive_names:  # near home, where loops can be closed
        drawn = np.array(cell.home.q) * 0.9 + 0.1 * drawn
    states = [dict(cell.poses(cell.home.replace(q=q)).items()) for q in drawn]
    pairs = cell.pairs(cell.home)
    for a, b in combinations(pairs.links, 2):
        verdict = pairs.why(a, b)
        if verdict.is_carried:
            continue
        said = [
            tested
            for x, y, tested in rules
            if (re.fullmatch(x, full[a]) and re.fullmatch(y, full[b]))
            or (re.fullmatch(x, full[b]) and re.fullmatch(y, full[a]))
        ]
        expected = said[-1] if said else not is_rigid(a, b, loose, states)
        assert verdict.tested == expected, (a, b, verdict)
        assert ((a, b) in pairs) == expected
