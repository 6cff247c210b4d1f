"""What AGL needs done, and the plain words it says it in. Standard library only."""
