"""Worktrees, history, kept things and guards, on the git program."""
