"""Programs of cells: what each robot does, runs of it, handing over.

`steps` has the steps, `program` puts them together; `run` plays a program, with `moves`
and `following` for motions and `sensors` for instants; `timeline` is the result, with
`clearance` and `loads` for questions about it, `playing` for what is seen of it.
`task_hand_over` hands a task over. `post_processors` writes motions for
controllers, `report` a page for people.
"""
