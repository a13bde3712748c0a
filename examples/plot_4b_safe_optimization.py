"""
Optimize safely
===============

A machine is to be tuned while it runs: each trial of a setting is noisy, and settings whose yield is too low must not be
tried at all. The model certifies before each trial that the yield is high enough, and the region where it can do so grows
with the trials.
"""

import matplotlib.pyplot as plt
import numpy as np

from wienerkernel import RBF, Optimizer, SafetyConstraint
from wienerkernel.palette import LIGHT

# %%
# The machine
# -----------
#
# The yield as a function of the setting is unknown; here it is a function of the model class, so that its RKHS norm is
# known. Trials have noise that is bounded, as of a reading with a limited resolution.

kernel, noise = 4.0 * RBF(1.5), "uniform(-0.3, 0.6)"
centers = np.array([[1.0], [3.0], [5.0], [8.0]])
weights = np.array([0.3, 0.1, 0.5, -0.4])


def f(X):
    """The true yield, minus what is needed to break even."""
    return kernel(X, centers) @ weights


norm = float(np.sqrt(weights @ kernel(centers, centers) @ weights))
generator = np.random.default_rng(0)


def trial(x):
    """One noisy measurement of the yield."""
    return float(f(x[None])[0] + generator.uniform(-0.3, 0.3))


# %%
# Ask and tell
# ------------
#
# The yield must stay above 0. Setting 2 is known to be safe. :class:`~wienerkernel.SafetyConstraint` certifies other
# settings from the bound on the norm and from the law of the noise. Its default bound holds for points that are chosen in
# view of earlier results, at all points and steps at once.

safety = SafetyConstraint(threshold=0.0, norm=norm, seeds=[[2.0]])
optimizer = Optimizer(
    [(0.0, 10.0)], kernel, noise, acquisition="ucb", safety=safety, candidates=201, random_state=0
)
grid = np.linspace(0, 10, 401)[:, None]
snapshots = {}
for number in range(1, 41):
    x = optimizer.ask()
    optimizer.tell(x, trial(x))
    if number in (1, 10, 40):
        snapshots[number] = safety.interval(optimizer.model, grid), optimizer.X, optimizer.y

best = optimizer.result()
print(
    f"best setting {best.x[0]:.2f}, true yield {f(best.x[None])[0]:.2f}; the maximum is {f(grid).max():.2f}"
)
print(f"smallest true yield of all trials: {f(optimizer.X).min():.2f}; it must not be below 0")

# %%
# The safe region grows
# ---------------------
#
# The shaded band contains the true yield with 95 % probability. A setting is certified where its lower end is at least 0.

fig, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained", sharey=True)
for ax, (number, ((low, high), X, y)) in zip(axes, snapshots.items(), strict=True):
    safe = low >= 0
    ax.fill_between(grid[:, 0], low, high, color=LIGHT["function"], label="95 % band")
    ax.plot(grid, f(grid), color=LIGHT["truth"], lw=1, label="true yield")
    ax.plot(X, y, "k.", markersize=4, label="trials")
    ax.axhline(0, color=LIGHT["mean"], lw=1, ls="--", label="must not be below")
    ax.plot(grid[safe], np.full(safe.sum(), -3.7), "|", color=LIGHT["estimate-line"], label="certified")
    ax.set(xlabel="setting", title=f"{number} trial{'s' * (number > 1)}", ylim=(-4, 6))
axes[0].set_ylabel("yield")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
plt.show()

# %%
# Where the norm of f is not known, :func:`~wienerkernel.rkhs_norm` estimates it from data; the certificate is then as
# good as that estimate. `wienerkernel safe-optimization` repeats the published experiment with four bounds, among them the
# exact quantiles of the noise, which certify a larger region.
