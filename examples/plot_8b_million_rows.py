"""
A million rows
==============

Rows in files are read in parts. With few distinct inputs, the model is exact for any number of rows; otherwise the
solution is approximate, and what that costs is a part of the variance of every prediction.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

from wienerkernel import RBF, Features, Neighbors, WienerKernelRegressor
from wienerkernel.palette import CAUSES, LIGHT

# %%
# A sensor counts in steps, so that a table of many rows has few distinct inputs. The files are read one after the other,
# and number, mean and variance of the samples at each input are all that the exact model needs. Raise ``ROWS`` for a
# million rows, or more than fit into memory.

ROWS, FILES = 100_000, 4
rng = np.random.default_rng(0)


def function(x):
    """A slow wave, with a fast one in its second half."""
    return np.sin(x) + 0.3 * np.sin(12 * x) * (x > 5)


def samples(x):
    """Observations with skewed noise."""
    return function(x) + rng.gamma(0.5, 1.0, len(x)) - 0.5


noise = "gamma(0.5, loc=-0.5, scale=1.0)"
kernel = 0.5 * RBF(0.15)
with TemporaryDirectory() as folder:
    for k in range(FILES):
        x = rng.uniform(0, 10, ROWS // FILES).round(2)
        table = np.column_stack([x, samples(x)])
        np.savetxt(Path(folder) / f"{k}.csv", table, "%.6g", ",", header="x,y", comments="")
    start = perf_counter()
    exact = WienerKernelRegressor(kernel, noise=noise, tuning=None).fit(f"{folder}/*.csv", "y")
    places = exact.posterior_.smoother.samples.n_places
    print(f"{ROWS:,} rows at {places:,} inputs, exact: {perf_counter() - start:.1f} s")

# %%
# If almost every row has an input of its own, the exact solution is out of reach.
# :class:`~wienerkernel.Neighbors` solves the equations of the samples near each query point, and
# :class:`~wienerkernel.Features` those of some inducing points. Both estimate the ``computational`` part of the variance:
# what is lost compared with the exact solution. The predicted standard deviation of f includes it.

X = rng.uniform(0, 10, ROWS)[:, None]
y = samples(X[:, 0])
query = np.linspace(0.5, 9.5, 200)[:, None]
kinds = {
    "features": {m: Features(m, random_state=0) for m in (20, 30, 45, 70, 100)},
    "neighbors": {m: Neighbors(m) for m in (16, 32, 64, 128, 256, 512)},
}
parts = {}
for kind, approximations in kinds.items():
    for m, approximation in approximations.items():
        start = perf_counter()
        model = WienerKernelRegressor(kernel, noise=noise, tuning=None, approximation=approximation).fit(X, y)
        mean, parts[kind, m] = model.predict(query), model.uncertainty(query)
        error = np.sqrt(np.mean((mean - function(query[:, 0])) ** 2))
        std = np.sqrt(np.mean(parts[kind, m].epistemic))
        print(f"{m:>4} {kind:<10}{perf_counter() - start:5.1f} s   error {error:.3f}, predicted {std:.3f}")

# %%
# The dashed line is the exact solution above, of as many rows at rounded inputs. Too few features cannot follow a function
# of this length scale, and the computational part says so; a few more are enough. With neighbors, the price is in the
# noise part: it falls with the number of samples that are averaged.

colors = {"noise": LIGHT["estimate"], "model": LIGHT["function"], "computational": LIGHT["computational"]}
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
reference = np.sqrt(np.mean(exact.posterior_.uncertainty(query).epistemic))
for axis, (kind, numbers) in zip(axes, kinds.items(), strict=True):
    for cause, color in colors.items():
        stds = [np.sqrt(np.mean(getattr(parts[kind, m], cause))) for m in numbers]
        axis.plot(list(numbers), stds, "o-", color=color, label=CAUSES[cause])
    total = [np.sqrt(np.mean(parts[kind, m].epistemic)) for m in numbers]
    axis.plot(list(numbers), total, color=LIGHT["text"], lw=1, label="all three")
    axis.axhline(reference, color=LIGHT["text"], lw=1, ls="--", label="exact solution")
    axis.set(xscale="log", yscale="log", xlabel=f"number of {kind}", ylim=(3e-3, 1))
    axis.set_xticks(list(numbers), map(str, numbers))
    axis.minorticks_off()
axes[0].set_ylabel("standard deviation of f(x)")
axes[1].legend(loc="upper right")
plt.show()
