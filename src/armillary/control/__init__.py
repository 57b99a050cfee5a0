"""Position control: tasks and constraints in, joint motion out."""
