"""The outside world, one module or folder per outside thing."""
