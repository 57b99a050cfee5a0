"""The verbs of the command line, each in a module of its name, loaded when chosen."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from armillary.cli.verb import Verb

__all__ = ["HELP", "all_verbs", "verb_of"]

HELP: Final = {
    "info": "what a cell holds: its tree, joints, limits, masses",
    "tree": "where all frames are in a state, as a tree",
    "check": "every diagnostic of a file, with its location and fix",
    "explain": "what the ids of diagnostics mean, and how to fix them",
    "view": "show the cell in a browser",
    "shot": "draw a picture of the cell",
    "fk": "the pose of a frame, once or a million times",
    "ik": "joint positions that reach a pose, or why none do",
    "plan": "a motion from A to B that touches nothing",
    "run": "what happens while a program runs, and how long it takes",
    "track": "joint motion that follows poses, step by step",
    "collide": "which links touch, and how near others are",
    "rules": "find the pairs of links that need no test for collision",
    "dynamics": "torques of joints, and which exceed their limits",
    "calibrate": "numbers of a robot from measurements of it",
    "sweep": "poses, collisions or inverse kinematics of millions of rows",
    "convert": "a file of one format to a file of another",
    "export": "a cell as one HTML file",
    "compile": "a cell as a library for C, for this machine or others",
    "show": "a cell on its way to machine code",
    "bench": "how fast this machine computes the pose of a frame",
    "plugins": "which installed packages offer joints, and which are allowed",
    "trust": "which kinematics scripts of files may run",
    "completion": "a script that completes verbs and options in bash, zsh or fish",
}
"""A line about each verb, in the order of the help."""


def verb_of(name: str) -> Verb:
    """Return a verb; this loads what it computes with."""
    verb: Verb = import_module(f"armillary.cli.{name}").run
    return verb


def all_verbs() -> tuple[Verb, ...]:
    """Return all verbs, in the order of the help."""
    return tuple(map(verb_of, HELP))
