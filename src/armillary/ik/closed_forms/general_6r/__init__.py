"""All answers of any arm of six revolute joints; see `docs/design/closed.md`."""
