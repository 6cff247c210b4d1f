"""Every port in memory: for tests, the harness, and dry runs."""
