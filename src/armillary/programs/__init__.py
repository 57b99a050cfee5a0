"""Programs of cells: what each robot does, runs of it, handing over.

`steps` has the steps, `program` puts them together; `run` plays a program on one time
axis, `running` has what a run knows, `doing` what steps do, `moves` and `following` the
motions, `asked` what many runs find together, `sensors` instants; `timeline` is the
result, with `clearance` and `loads` for questions about it, `playing` for what is seen.
`task_hand_over` hands a task over. `post_processors` writes motions for
controllers, `report` a page for people.
"""
