"""The groups of rows. Each is a module with `TITLE`, the programs it `NEEDS`, and `measure(bench)`."""
