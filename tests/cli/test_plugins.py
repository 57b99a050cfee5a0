"""`armillary plugins`: what is installed, and that only what is allowed is imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

LIFT = """
import armillary as arm

class Lift(arm.Joint):
    def pose(self, q):
        return arm.Pose.translation(0, 0, q)
"""


def rows(text: str) -> dict[tuple[str, str], list[str]]:
    lines = [line.split() for line in text.splitlines() if "1.2" in line.split()]
    return {(line[0], line[2]): line[3:] for line in lines}


def test_a_table_of_all(run, install, config: Path):
    install("works", {"Lift": "p_lift:Lift"}, {"p_lift": LIFT})
    install("broken", {"Crank": "p_crank:Crank"}, {"p_crank": "1 / 0"})
    install("spare", {"Wheel": "p_wheel:Wheel"}, {"p_wheel": "1 / 0"})
    install("greedy", {"Revolute": "p_wheel:Wheel"})
    install("handed", {"Hand": "p_hand:Lift"}, {"p_hand": LIFT})
    config.write_text("plugins = ['works', 'Broken', 'greedy', 'gone-by']\n")
    result = run("plugins", "--plugin", "handed")
    assert result.code == 1
    found = rows(result.out)
    by_user = ["by", "the", "configuration"]
    assert found["works", "Lift"] == [*by_user, "works"]
    assert found["broken", "Crank"] == [*by_user, "broken"]
    assert found["spare", "Wheel"] == ["no", "not", "imported"]
    assert found["greedy", "Revolute"][:5] == [*by_user, "never", "used:"]
    assert found["handed", "Hand"] == ["by", "--plugin", "broken"]
    assert "ZeroDivisionError: division by zero" in result.out
    assert "for joint type 'Hand' it offers a class whose tag is 'Lift'" in result.out
    assert "gone-by is allowed by the configuration, but is not installed" in result.out
    assert result.out.splitlines()[-1] == f"configuration: {config}"
    assert "p_lift" in sys.modules
    assert "p_wheel" not in sys.modules


def test_nothing_is_imported_unless_allowed(run, install):
    install("spare", {"Wheel": "p_wheel:Wheel"}, {"p_wheel": "raise SystemExit(5)"})
    result = run("plugins")
    assert result.code == 0
    assert rows(result.out)["spare", "Wheel"] == ["no", "not", "imported"]
    assert result.out.splitlines()[-1] == "configuration: none"


def test_two_of_one_name(run, install, config: Path):
    install("one", {"Lift": "p_lift:Lift"}, {"p_lift": LIFT})
    install("two", {"Lift": "p_lift:Lift"})
    config.write_text("plugins = ['one', 'two']\n")
    result = run("plugins")
    assert result.code == 1
    assert result.out.count("offered by the plug-ins one 1.2 and two 1.2") == 1


def test_post_processors_are_listed(run, install, config: Path):
    group = "armillary.post_processors"
    install("acme", {"krl2": "p_acme:MADE"}, {"p_acme": "MADE = 3"}, group=group)
    install("spare", {"apt": "p_acme:MADE"}, group=group)
    result = run("plugins", "--plugin", "acme")
    assert result.code == 1
    found = rows(result.out)
    assert found["acme", "krl2"] == ["by", "--plugin", "broken", "(post-processor)"]
    assert found["spare", "apt"][:3] == ["no", "not", "imported"]
    assert "for post-processor 'krl2' it offers 3" in result.out


def test_none_at_all(run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("armillary.cli.plugins.offers", lambda *_: ())
    result = run("plugins")
    assert (result.code, result.out.splitlines()[0]) == (
        0,
        "No installed package offers joints or post-processors.",
    )


def test_an_unknown_name(run):
    result = run("plugins", "--plugin", "no-such-package")
    assert result.code == 2
    assert "no plug-in named 'no-such-package'" in result.err


def test_a_wrong_configuration(run, config: Path):
    config.write_text("plugin = ['acme']")
    result = run("plugins")
    assert result.code == 2
    assert "has no key 'plugin'. Did you mean 'plugins'?" in result.err


def test_metadata_cannot_write_to_the_terminal(run, install):
    install("evil", {"Lift\033[2J": "x:Y"})
    result = run("plugins")
    assert "\033" not in result.out
