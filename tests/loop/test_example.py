import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples/loop_offline.py"


def test_the_offline_example_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLE)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "temperature: -3.0",
        "delete: Refused: nobody deletes here",
        "It is -3 °C in Oslo. (2 turns)",
        "from the checkpoint, asking nobody: It is -3 °C in Oslo.",
    ]
