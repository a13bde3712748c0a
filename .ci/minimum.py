"""Print the oldest supported version of each dependency as constraints for pip."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
for requirement in project["dependencies"] + [
    r for e in ("plot", "array", "cli", "parquet", "explore", "casadi", "dask") for r in extras.get(e, [])
]:
    if ">=" in requirement:
        # constraints have no extras
        print(re.sub(r"\[.*\]", "", requirement).replace(">=", "=="))
