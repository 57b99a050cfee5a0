"""Digests of questions and cells, by which files of users are recognised."""

from __future__ import annotations

import hashlib
import io
import pickle

import armillary as arm
from armillary.kinematics.identity import cell_digest, digest


def test_cells_of_files_are_recognised_by_the_hash_that_these_have():
    """Motions and sweeps of users have it: another one would make them foreign."""
    cell = arm.example("scara").workcell
    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, protocol=5)
    pickler.fast = True
    thing = "a", (1.0, 2), None, b"c"
    pickler.dump(thing)
    assert digest(thing) == hashlib.sha256(stream.getvalue()).hexdigest()
    assert cell_digest(cell) == digest(cell) != digest(cell, is_ours=True)
