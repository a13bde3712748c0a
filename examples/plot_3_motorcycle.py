"""
Motorcycle data: replicates and changing noise
==============================================

Head acceleration after the impact of a motorcycle, 133 measurements at 94 different times (Silverman, 1985). Some
times were measured several times, and the noise is small before the impact and large after it.
"""

import matplotlib.pyplot as plt
import numpy as np

from wienerkernel import TubeDisplay, WienerKernelRegressor, compare
from wienerkernel.experiments.datasets import load_mcycle

# %%
# Replicates
# ----------
#
# Rows with the same time are collapsed to one place with a count: the result is exactly that of all rows, and the cost
# is that of the different places.

X, y = load_mcycle()
constant = WienerKernelRegressor(trend="constant").fit(X, y)
print(len(X), "rows at", len(constant.posterior_.smoother.places), "places")
print({name: round(value, 2) for name, value in constant.tuned_.parameters.items()})
print(constant.score_report())

# %%
# The coverage looks right on average. At most times it is not right: one standard deviation for all times is too much at the
# start and too little in the middle.

grid = np.linspace(0, 60, 300)
display = TubeDisplay.from_estimator(constant, grid, width=2)
display.ax_.plot(X, y, "k.", ms=3, label="data")
display.ax_.set(xlabel="time in ms", ylabel="acceleration in g", title="one noise for all (tubes of 2 std)")
display.ax_.legend(frameon=False, fontsize=8)
plt.show()

# %%
# Noise that changes
# ------------------
#
# `fit(X, y, noise_scale=s)` says that sample i has the noise s_i M_i. Here s is not known. The leave-one-out residuals
# tell about it: the logarithm of their squares is a noisy observation of log s^2, so a second regression smooths it.

residual = constant.loo().residual
log_square = np.log(residual**2 + 1.0)
spread = WienerKernelRegressor(trend="constant").fit(X, log_square)
scale = np.exp(0.5 * (spread.predict(X) - spread.predict(X).mean()))
print("scale between", scale.min().round(2), "and", scale.max().round(2))

changing = WienerKernelRegressor(trend="constant").fit(X, y, noise_scale=scale)
print(compare({"one noise": constant, "changing noise": changing}))

# %%
# The score decides for the changing noise, by several standard errors.
#
# A new observation has the noise of scale 1; at a place with the scale s it is s times that. Its interval at each time
# is therefore put together here: epistemic variance plus s^2 times the noise variance.

s = np.exp(0.5 * (spread.predict(grid[:, None]) - spread.predict(X).mean()))
parts = changing.uncertainty(grid[:, None])
mean = changing.predict(grid[:, None])
half = 2 * np.sqrt(parts.epistemic + s**2 * parts.aleatoric)
figure, ax = plt.subplots(layout="constrained")
ax.fill_between(grid, mean - half, mean + half, color="#d9d9d9", lw=0, label="new observation")
half = 2 * np.sqrt(parts.epistemic)
ax.fill_between(grid, mean - half, mean + half, color="#8c8c8c", lw=0, label="function value")
half = 2 * np.sqrt(parts.noise)
ax.fill_between(grid, mean - half, mean + half, color="#3fae49", lw=0, label="noise in the data")
ax.plot(grid, mean, color="#d62728", label="mean")
ax.plot(X, y, "k.", ms=3, label="data")
ax.set(xlabel="time in ms", ylabel="acceleration in g", title="noise that changes (tubes of 2 std)")
ax.legend(frameon=False, fontsize=8)
plt.show()
