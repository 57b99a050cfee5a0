"""Programs of cells: what each robot does, and what a run of it is like.

`steps` has the steps, `program` puts them together; `run` plays a program, with `moves`
and `following` for motions and `sensors` for instants; `timeline` is the result, with
`clearance` and `loads` for questions about it.
"""
