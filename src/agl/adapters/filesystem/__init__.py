"""The ledger, the log and the locks as files below AGL's home."""
