"""The money of a run: the cap, the ledger, and what was spent."""
