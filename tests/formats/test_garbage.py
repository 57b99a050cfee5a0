from __future__ import annotations

import gc
from pathlib import Path

import pytest

from armillary.errors import FormatError
from armillary.formats.garbage import no_search
from armillary.formats.registry import load


def test_the_search_goes_on_afterwards_as_it_was():
    assert gc.isenabled()
    with no_search():
        assert not gc.isenabled()
        with no_search():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_faulty_file_does_not_stop_the_search(tmp_path: Path):
    path = tmp_path / "faulty.cell.json"
    path.write_text('{"format": "armillary cell"')
    with pytest.raises(FormatError):
        load(path)
    assert gc.isenabled()
