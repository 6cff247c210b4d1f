"""What screens are made of."""

from agl.ports.terminal import Choice, Component, Response, Row, Rows, Screen, Text, TextInput

__all__ = ["Choice", "Component", "Response", "Row", "Rows", "Screen", "Text", "TextInput"]
