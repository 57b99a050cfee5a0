"""What a legal program is."""

from __future__ import annotations

from armillary.trace.ops import OPS, type_real
from armillary.trace.program import Program


def verify(program: Program) -> None:
    """Check every rule of a legal program; a broken one is a fault of the compiler.

    Raises:
        AssertionError: The program breaks a rule; the message says which.
    """
    steps = program.instructions
    input_count = sum(port.size for port in program.inputs)
    for k, step in enumerate(steps):
        where = f"{program.name} %{k} {step.name}"
        if step.name == "input":
            assert not step.args and step.value in range(input_count), where
        elif step.name == "const":
            assert not step.args, where
        else:
            op = OPS.get(step.name)
            assert op is not None, f"{where}: unknown operation"
            assert len(step.args) == op.arity, f"{where}: {len(step.args)} arguments"
            assert all(0 <= arg < k for arg in step.args), f"{where}: used before made"
            kinds = tuple(steps[arg].kind for arg in step.args)
            assert kinds == op.args, f"{where}: arguments are {kinds}"
            assert step.kind == op.result, f"{where}: result is {step.kind}"
    assert len({port.name for port in program.inputs}) == len(program.inputs)
    assert len({port.name for port in program.outputs}) == len(program.outputs)
    assert len(program.results) == sum(port.size for port in program.outputs)
    for result in program.results:
        assert 0 <= result < len(steps), f"{program.name}: result %{result} is missing"
        assert steps[result].kind == type_real, f"{program.name}: a result is a truth"
