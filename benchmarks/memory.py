"""Memory of a fit to rows that are made on the fly: the peak of one process, against 250 MB + 4 m^2 + 3 chunk m doubles.

Run with ``python benchmarks/memory.py``; ``--rows`` and ``--features`` change the size. The exact collapse of the same
rows, rounded to 10,000 distinct inputs, comes first.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from wienerkernel import RBF, Features
from wienerkernel.scale.collapse import collapse
from wienerkernel.scale.condition import condition
from wienerkernel.scale.stream import Stream
from wienerkernel.scale.sums import BLOCK

BATCH, LIMIT = 2**16, 2**30


def batches(part: tuple[int, int, bool]):
    """Rows of a part: its number, how many rows it has, and whether inputs are rounded."""
    seed, rows, rounded = part
    rng = np.random.default_rng(seed)
    for start in range(0, rows, BATCH):
        n = min(BATCH, rows - start)
        X = rng.uniform(size=(n, 2))
        X = np.floor(100 * X) / 100 if rounded else X
        y = np.sin(6 * X[:, :1]) + X[:, 1:] + 0.1 * rng.standard_normal((n, 1))
        yield X, y, np.ones(n)


def peak() -> float:
    """Largest memory of this process so far, in bytes."""
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=500)
    parser.add_argument("--parts", type=int, default=64)
    options = parser.parse_args()
    rows, m = options.rows // options.parts, options.features
    print(f"{rows * options.parts:,} rows in {options.parts} parts; {peak() / 1e6:.0f} MB before")
    start = time.process_time()
    found = collapse(Stream([(k, rows, True) for k in range(options.parts)], batches, 2))
    assert found is not None
    print(
        f"   exact collapse to {len(found.count):,} inputs: {time.process_time() - start:.0f} s, peak {peak() / 1e6:.0f} MB"
    )
    start = time.process_time()
    stream = Stream([(k, rows, False) for k in range(options.parts)], batches, 2)
    sample = stream.sample(4 * m, 1)
    smoother = condition(Features(m), RBF(0.2), stream, sample.X, 0.01, "constant")
    assert smoother.sums.n == rows * options.parts
    limit = 250e6 + 8 * (4 * m**2 + 3 * (BLOCK // m) * m)
    used = peak()
    print(f"   {m} features: {time.process_time() - start:.0f} s, peak {used / 1e6:.0f} MB")
    for name, most in (("250 MB + 4 m^2 + 3 chunk m doubles", limit), ("1 GiB", LIMIT)):
        print(f"   target {name}, {most / 1e6:.0f} MB: {'met' if used <= most else 'MISSED'}")


if __name__ == "__main__":
    main()
