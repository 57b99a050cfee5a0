"""Offers are read from metadata: whatever that holds, nothing is imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from armillary.plugins import Offer, normal, offers


def of(package: str) -> list[Offer]:
    return [offer for offer in offers() if offer.package == package]


def test_offers_are_listed_without_import(install):
    install("acme-lifts", {"Lift": "acme:Lift", "x.Crank": "acme.deep:Crank"})
    assert of("acme-lifts") == [
        Offer("acme-lifts", "1.2", "Lift", "acme:Lift"),
        Offer("acme-lifts", "1.2", "x.Crank", "acme.deep:Crank"),
    ]
    assert of("acme-lifts")[0].label == "acme-lifts 1.2"
    assert "acme" not in sys.modules


def test_what_is_installed_later_is_found(install):
    install("one", {"One": "one:One"})
    assert of("one") and not of("two")
    install("two", {"Two": "two:Two"})
    assert of("one") and of("two")


def test_the_first_of_a_name_on_the_path_counts(
    install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    install("Acme_Lifts", {"New": "new:New"}, version="2.0")
    old = tmp_path / "old" / "acme_lifts-1.0.dist-info"
    old.mkdir(parents=True)
    (old / "METADATA").write_text("Name: acme.lifts\nVersion: 1.0\n")
    (old / "entry_points.txt").write_text("[armillary.joints]\nOld = old:Old\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(old.parent)])
    assert [o.tag for o in offers() if normal(o.package) == "acme-lifts"] == ["New"]


@pytest.mark.parametrize("name", ["a-b", "A_B", "a.b", " a-_.b "])
def test_names_have_one_normal_spelling(name: str):
    assert normal(name) == "a-b"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[other]\nLift = a:b\n", []),
        ("[armillary.joints]\n# no\n; no\n\n  Lift=a:b\n[x]\nY = a:b", ["Lift"]),
        ("[armillary.joints]\nLift\n", ["Lift"]),
        ("[ armillary.joints ]\r\nLift = a:b\r\n", ["Lift"]),
        ("Lift = a:b\n", []),
        ("", []),
        ("\0" * 99, []),
    ],
)
def test_odd_metadata(install, tmp_path: Path, text: str, expected: list[str]):
    install("odd", {})
    (tmp_path / "site" / "odd-1.2.dist-info" / "entry_points.txt").write_text(text)
    assert [offer.tag for offer in of("odd")] == expected


@pytest.mark.parametrize("name", ["entry_points.txt", "METADATA"])
def test_unreadable_metadata_offers_nothing(install, tmp_path: Path, name: str):
    install("fine", {"Fine": "fine:Fine"})
    install("odd", {"Lift": "a:b"})
    bad = tmp_path / "site" / "odd-1.2.dist-info" / name
    bad.write_bytes(b"\xff\xfe[armillary.joints]\nLift = a:b\n")
    assert of("odd") == []
    assert [offer.tag for offer in of("fine")] == ["Fine"]


def test_packages_without_metadata_offer_nothing(install, tmp_path: Path):
    install("odd", {"Lift": "a:b"})
    (tmp_path / "site" / "odd-1.2.dist-info" / "METADATA").unlink()
    assert of("odd") == []
