"""The machinery behind Run; not for workflow authors."""
