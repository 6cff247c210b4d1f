"""A measured figure beside its aim, and how a list of them is shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """`aim` is the most that `value` should be; None: told for information."""

    name: str
    value: float
    unit: str
    aim: float | None = None

    @property
    def met(self) -> bool | None:
        return None if self.aim is None else self.value <= self.aim

    @property
    def json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "value": round(self.value, 4),
            "unit": self.unit,
            "aim": self.aim,
            "met": self.met,
        }


def table(figures: Iterable[Figure]) -> str:
    """One line for each figure, in columns."""
    rows = [("what", "measured", "aim", "met"), *map(_row, figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        "  ".join(
            (row[0].ljust(widths[0]), row[1].rjust(widths[1]), row[2].rjust(widths[2]), row[3])
        ).rstrip()
        for row in rows
    )


def _row(figure: Figure) -> tuple[str, str, str, str]:
    met = {None: "", True: "yes", False: "NO"}[figure.met]
    aim = "" if figure.aim is None else f"≤ {figure.aim:g}"
    return figure.name, f"{figure.value:.3g} {figure.unit}", aim, met
