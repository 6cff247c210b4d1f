"""Everything AGL can do, as functions without a terminal."""
