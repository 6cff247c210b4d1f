"""For workflow authors and adapter authors: the harness, and one contract suite per port."""
