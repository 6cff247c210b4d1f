"""The tools with which AGL's own agents work in a tree."""
