"""
The two figures of the paper
============================

This example reproduces the numerical section of Faulwasser and Molodchyk, *Wiener Chaos in Kernel Regression*: a scalar
system with few samples, first with normal and then with Gamma noise. `wienerkernel paper` writes more detailed versions
of the same figures to files.
"""

import matplotlib.pyplot as plt
import numpy as np

from wienerkernel import RBF, TubeDisplay, WienerKernelRegressor
from wienerkernel.palette import LIGHT

# %%
# The system is eq. (15) of the paper. The hyperparameters of the kernel are given, so tuning is disabled.


def truth(x):
    """Right-hand side of eq. (15), without noise."""
    return 0.01 * x**3 - 0.2 * x**2 + 0.2 * x


def fit(n_places, n_repeats, noise):
    """Fit repeated samples at evenly spaced locations."""
    model = WienerKernelRegressor(4.21**2 * RBF(3.59), noise=noise, trend=None, tuning=None)
    x = np.repeat(np.linspace(-5, 5, n_places), n_repeats)
    draws = LAWS[noise](np.random.default_rng([0, n_places, n_repeats]), len(x))
    return model.fit(x[:, None], truth(x) + draws), x, truth(x) + draws


LAWS = {
    "norm(0, 1)": lambda generator, n: generator.normal(0, 1, n),
    "gamma(0.25, scale=2)": lambda generator, n: generator.gamma(0.25, 2, n),
}
grid = np.linspace(-6, 6, 241)

# %%
# Normal noise
# ------------
#
# The number of locations increases from left to right, and the number of samples per location from top to bottom. The
# green tube shows the uncertainty due to noise in the data (:math:`\sigma_\mathrm{WK}`, eq. (14)), the blue tube
# the total uncertainty about f (:math:`\sigma_\mathrm{GP}`, eq. (2b)), and the light gray tube that of a new
# observation (eq. (3)).

figure, axes = plt.subplots(3, 3, figsize=(9, 7.5), sharex=True, sharey=True, layout="constrained")
print("variances at x = 1.25")
print(" N_x N_sam   noise V   model P2")
for row, n_repeats in zip(axes, (1, 5, 25), strict=True):
    for ax, n_places in zip(row, (2, 3, 5), strict=True):
        model, x, y = fit(n_places, n_repeats, "norm(0, 1)")
        TubeDisplay.from_estimator(model, grid, ax=ax)
        ax.plot(grid, truth(grid), color=LIGHT["truth"], label="true function")
        ax.plot(x, y, "kx", ms=4, label="data")
        ax.set_title(f"$N_x = {n_places}$, $N_{{sam}} = {n_repeats}$", fontsize=10)
        ax.margins(x=0)
        parts = model.uncertainty([[1.25]])
        print(f"{n_places:4d} {n_repeats:5d} {parts.noise[0]:9.4f} {parts.model[0]:10.4f}")
handles, labels = axes[0, 0].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False, fontsize=8)
plt.show()

# %%
# From top to bottom, the green tube shrinks, while the blue one approaches the model part: more samples at the
# same locations provide no information about unexplored inputs between them. From left to right, the model part
# decreases. The light gray tube never gets narrower than the noise.
#
# Gamma noise
# -----------
#
# If the noise is skewed, so is the estimate, in the opposite direction: a large positive error in a sample pulls the
# estimate up, so that f is more likely to be far below the estimate than far above it. The density is computed exactly,
# not estimated from draws.

model, x, y = fit(5, 1, "gamma(0.25, scale=2)")
estimate = model.predict_distribution([[0.0]])
mean, std = float(estimate.mean()[0]), float(estimate.std()[0])
print(f"mean {mean:.4f}   std {std:.4f}   skewness {float(estimate.skewness()[0]):.3f}")
print("5 %, 50 % and 95 % quantile:", estimate.ppf(np.array([[0.05], [0.5], [0.95]])).ravel().round(3))

heights = np.linspace(mean - 4, mean + 3, 600)
draws = estimate.rvs(5000, random_state=0)[:, 0]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
functions = model.predict_distribution(grid[:, None]).rvs(300, random_state=1)
left.plot(grid, functions.T, color=LIGHT["estimate"], lw=0.4, alpha=0.5)
left.plot(grid, truth(grid), color=LIGHT["truth"], label="true function")
left.plot(grid, model.predict(grid[:, None]), color=LIGHT["mean"], label="mean")
left.plot(x, y, "kx", label="data")
left.plot([], [], color=LIGHT["estimate"], label="draws of the estimate")
left.set(xlabel="$x$", ylim=(-14, 5))
left.margins(x=0)
left.legend(frameon=False, fontsize=8, loc="lower right")
right.hist(
    draws, bins=80, range=(heights[0], heights[-1]), density=True, color=LIGHT["estimate"], label="5000 draws"
)
right.plot(heights, estimate.pdf(heights[:, None])[:, 0], color=LIGHT["mean"], label="exact density")
gaussian = np.exp(-0.5 * ((heights - mean) / std) ** 2) / (std * np.sqrt(2 * np.pi))
right.plot(heights, gaussian, color=LIGHT["estimate-line"], label="Gaussian, same variance")
right.axvline(truth(0.0), color=LIGHT["truth"], lw=1, label="true value")
right.set(xlabel="estimate at $x = 0$", ylabel="density")
right.margins(x=0)
right.legend(frameon=False, fontsize=8, loc="upper left")
plt.show()
