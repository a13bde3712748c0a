"""The command line: from a table of measurements to predictions and a report. Needs the extra ``cli``.

Results go to standard output, messages to standard error. An error in the data or the model is one line on standard
error and exit code 1. Wrong usage, such as options that are invalid for any data and model, has exit code 2, and an
interrupt has exit code 130.
"""

from __future__ import annotations

import os
import sys

__all__ = ["main"]

try:
    from .app import app
    from .options import UsageError
except ImportError as _error:  # pragma: no cover
    if (_error.name or "").partition(".")[0] not in ("typer", "rich", "click"):
        raise
    sys.exit("wienerkernel: the command line needs more packages: pip install 'wienerkernel[cli]'")


def main() -> None:
    """Run the command line; a user error prints one line, not a traceback."""
    try:
        app()
    except BrokenPipeError:
        # The reader of our output closed it; without this, Python would print an error when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        where = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
        sys.exit(f"wienerkernel: {where}")
    except MemoryError as error:
        sys.exit(f"wienerkernel: not enough memory for this many samples: {error}")
    except (ImportError, ValueError) as error:  # a package of an extra is missing, or an argument is wrong
        line = f"wienerkernel: {' '.join(str(error).split())}"
        if isinstance(error, UsageError):
            print(line, file=sys.stderr)
            sys.exit(2)
        sys.exit(line)
