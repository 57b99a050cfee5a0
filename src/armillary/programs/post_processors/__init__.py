"""Programs for robot controllers, made of motions."""
