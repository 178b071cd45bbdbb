"""One deliberately wrong variant per rule, and the test that catches it. `python -m tests.mutants` prints the table."""
