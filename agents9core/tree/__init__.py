"""The nodes of the tree: what each directory lists and what each file says."""
