"""What each port promises, as a suite that any adapter can subclass."""
