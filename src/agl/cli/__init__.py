"""argv in, exit code out."""
