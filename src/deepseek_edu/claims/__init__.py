"""Functions that recompute the claims of the ledger (`course/claims.toml`, `course/claims/`), one file per topic.

A check takes no argument (or the record of a run) and returns the value that the ledger states. It runs whenever the
site is built. It uses the mechanism's own source, so that a change of the mechanism cannot leave a claim behind.
"""
