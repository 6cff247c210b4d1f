"""AGL runs AI coding agents on a git repository as workflows written in plain async Python."""
