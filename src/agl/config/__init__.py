"""Settings, the registry of entry points, and the container that wires it all."""
