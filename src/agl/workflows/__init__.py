"""The workflows AGL ships, one package each."""
