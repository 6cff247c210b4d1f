"""What AGL costs, measured against the aims it was built to."""
