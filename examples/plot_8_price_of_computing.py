"""
The price of computing
======================

An approximate solution adds to the uncertainty of a prediction. On few data, where the exact solution is known, the
variance splits into noise in the data, unexplored inputs, and what the approximation costs.
"""

import matplotlib.pyplot as plt
import numpy as np

from wienerkernel import RBF, Actions, WienerKernelRegressor
from wienerkernel.palette import CAUSES, LIGHT

# %%
# The weights a(x) of the estimate solve a linear system with one equation per sample. :class:`~wienerkernel.Actions`
# solves it in a subspace: that of the first m samples of a random order, or of those that a partial Cholesky factorization
# takes, each where the variance given the previous ones is largest.

rng = np.random.default_rng(0)
X = np.sort(np.concatenate([rng.uniform(0, 6, 150), rng.uniform(8, 10, 50)]))[:, None]
y = np.sin(X[:, 0]) + rng.gamma(0.5, 0.6, len(X))
query = np.linspace(0, 10, 201)[:, None]


def fit(approximation):
    """A model with known kernel and noise."""
    model = WienerKernelRegressor(
        RBF(0.7), noise="gamma(0.5, scale=0.6)", tuning=None, approximation=approximation
    )
    return model.fit(X, y)


numbers = [4, 6, 9, 13, 20, 30, 45, 70, 100, 150, 200]
exact = fit(None).uncertainty(query)
parts = {kind: [fit(Actions(kind, m)).uncertainty(query) for m in numbers] for kind in ("subset", "cholesky")}

# %%
# With every action, the sum of the three parts decreases to the variance of the exact solution. Pivots cover the inputs
# with far fewer actions than a random subset. The noise part is not a measure of the cost: it first increases with the
# number of actions, and then decreases while more samples are averaged.

colors = {"noise": LIGHT["estimate"], "model": LIGHT["function"], "computational": LIGHT["computational"]}
names = {"subset": "random subset", "cholesky": "partial Cholesky factorization"}
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for axis, (kind, found) in zip(axes, parts.items(), strict=True):
    means = [[np.mean(getattr(part, cause)) for part in found] for cause in colors]
    axis.stackplot(numbers, means, colors=colors.values(), labels=[CAUSES[cause] for cause in colors])
    axis.axhline(np.mean(exact.epistemic), color=LIGHT["text"], lw=1, ls="--", label="exact solution")
    axis.set(xscale="log", xlabel="number of actions", title=names[kind], xlim=(numbers[0], numbers[-1]))
axes[0].set_ylabel("variance of f(x), averaged over x")
axes[1].legend(loc="upper right")
plt.show()

# %%
# Along x, with 13 pivots: between 6 and 8 there are no samples, and the uncertainty there is that of unexplored inputs,
# which more computing does not reduce. Elsewhere it does, and 200 samples average the noise better than 13.

some = parts["cholesky"][numbers.index(13)]
figure, axis = plt.subplots(figsize=(9, 3.2), layout="constrained")
stacked = [np.sqrt(np.sum([getattr(some, c) for c in list(colors)[: k + 1]], axis=0)) for k in range(3)]
lower = np.zeros(len(query))
for cause, upper in zip(colors, stacked, strict=True):
    axis.fill_between(query[:, 0], lower, upper, color=colors[cause], label=CAUSES[cause], lw=0)
    lower = upper
axis.plot(query[:, 0], np.sqrt(exact.epistemic), color=LIGHT["text"], lw=1, ls="--", label="exact solution")
axis.plot(X[:, 0], np.zeros(len(X)), "|", color=LIGHT["text"], ms=8, clip_on=False)
axis.set(xlabel="x", ylabel="standard deviation of f(x)", xlim=(0, 10), ylim=(0, None))
axis.legend(loc="upper left")
plt.show()
