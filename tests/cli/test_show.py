"""`armillary show`: every stage from the model to assembly."""

from __future__ import annotations

from pathlib import Path

from llvmlite import binding

import armillary as arm
from armillary.kernel.compiler import assembly_text, kernel_text, native_reals
from armillary.trace import listing


def test_model(run, file: str, cell: arm.Cell):
    result = run("show", file, "--stage", "model")
    assert result.code == 0, result.err
    Path("again.cell.json").write_text(result.out)
    assert arm.load("again.cell.json") == cell


def test_program(run, file: str, cell: arm.Cell):
    result = run("show", file, "--frame", "thumb")
    assert result.code == 0, result.err
    assert result.out == listing(cell.fk("thumb").program) + "\n"


def test_the_end_effector_comes_first(run, file: str):
    named = run("show", file, "--stage", "program", "--frame", "hand/tip")
    assert run("show", file, "--stage", "program") == named


def test_llvm(run, file: str, cell: arm.Cell):
    """The module of the frame that is asked for, and LLVM takes it as it is."""
    result = run("show", file, "--stage", "llvm", "--frame", "thumb")
    assert result.code == 0, result.err
    real = native_reals(64)
    assert result.out == kernel_text(cell.fk("thumb").program, real).rstrip() + "\n"
    module = binding.parse_assembly(result.out)
    module.verify()
    assert not module.get_function("block").is_declaration
    assert result.out != run("show", file, "--stage", "llvm", "--frame", "hand/tip").out


def test_asm(run, file: str, cell: arm.Cell):
    result = run("show", file, "--stage", "asm", "--frame", "thumb")
    assert result.code == 0, result.err
    program = cell.fk("thumb").program
    assert result.out == assembly_text(program, native_reals(64)).rstrip() + "\n"
    assert "\nblock:" in result.out
    other = run("show", file, "--stage", "asm", "--frame", "hand/tip").out
    assert result.out != other


def test_unknown_frame(run, file: str):
    result = run("show", file, "--frame", "tpi")
    assert (result.code, result.out) == (2, "")
    assert "Did you mean 'tip'?" in result.err


def test_a_cell_without_end_effector_shows_its_last_link(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    slide = arm.Link(name="slide", parent="base", joint=arm.joints.Prismatic())
    body = arm.Manipulator(name="body", links=[slide, arm.Link(name="base")])
    arm.save(arm.Cell(manipulators=[body]), "x.cell.json")
    named = run("show", "x.cell.json", "--frame", "slide")
    assert run("show", "x.cell.json") == named


def test_an_empty_cell_has_no_frame(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arm.save(arm.Cell(name="void"), "void.cell.json")
    result = run("show", "void.cell.json")
    assert result.code == 2
    assert result.err == "armillary: Cell 'void' is empty; it has no frame.\n"
