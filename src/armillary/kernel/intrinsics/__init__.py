"""Mathematical functions in vector IR, one family a file, each with its error bound."""
