import ast
import sys
from pathlib import Path

import agl.ports


def test_ports_import_the_standard_library_alone() -> None:
    for file in sorted(Path(agl.ports.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            for module in modules:
                top = module.split(".")[0]
                ours = module.startswith("agl.ports")
                assert ours or top in sys.stdlib_module_names, f"{file.name} imports {module}"
