"""An AGL workflow that writes a changelog entry."""
