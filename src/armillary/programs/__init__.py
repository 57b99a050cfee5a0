"""What a cell does, and how that is handed over: to controllers, and to people."""
