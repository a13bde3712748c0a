"""
Motorcycle data: replicates and heteroscedastic noise
=====================================================

The data are 133 measurements of head acceleration at 94 distinct times in a simulated motorcycle accident (Silverman,
1985). There are several measurements at some times, and the noise is small before the impact and large after it.
"""

import matplotlib.pyplot as plt
import numpy as np

from wienerkernel import TubeDisplay, WienerKernelRegressor, compare
from wienerkernel.experiments.datasets import load_mcycle

# %%
# Replicates
# ----------
#
# Rows with the same time are merged into one, with a count. The result is the same as without merging, but the cost
# only depends on the number of distinct times.

X, y = load_mcycle()
constant = WienerKernelRegressor(trend="constant").fit(X, y)
print(len(X), "rows at", len(constant.posterior_.smoother.places), "distinct times")
print({name: round(value, 2) for name, value in constant.tuning_result_.parameters.items()})
print(constant.score_report())

# %%
# The coverage is about right on average, but not at most individual times: a constant standard deviation is too large
# at the start and too small in the middle.

grid = np.linspace(0, 60, 300)
display = TubeDisplay.from_estimator(constant, grid, width=2)
display.ax_.plot(X, y, "k.", ms=3, label="data")
display.ax_.set(xlabel="time in ms", ylabel="acceleration in g", title="constant noise (tubes of 2 std)")
display.ax_.legend(frameon=False, fontsize=8)
plt.show()

# %%
# Heteroscedastic noise
# ---------------------
#
# With `fit(X, y, noise_scale=s)`, sample i has the noise s_i M_i. Here s is unknown, but it can be estimated from the
# leave-one-out residuals: the logarithm of their squares is a noisy observation of log s^2, which is smoothed by a
# second regression.

residual = constant.loo().residual
log_square = np.log(residual**2 + 1.0)
spread = WienerKernelRegressor(trend="constant").fit(X, log_square)
scale = np.exp(0.5 * (spread.predict(X) - spread.predict(X).mean()))
print("scale between", scale.min().round(2), "and", scale.max().round(2))

varying = WienerKernelRegressor(trend="constant").fit(X, y, noise_scale=scale)
print(compare({"constant noise": constant, "varying noise": varying}))

# %%
# The score favors the varying noise by several standard errors.
#
# By default, the noise of a new observation has scale 1; other scales are passed to the prediction. (`noise_level="input"`
# estimates the kernel and the level together, without these steps.)

s = np.exp(0.5 * (spread.predict(grid[:, None]) - spread.predict(X).mean()))
parts = varying.uncertainty(grid[:, None], noise_scale=s)
ax = TubeDisplay(grid, varying.predict(grid[:, None]), parts, width=2.0).plot().ax_
ax.plot(X, y, "k.", ms=3, label="data")
ax.set(xlabel="time in ms", ylabel="acceleration in g", title="varying noise (tubes of 2 std)")
ax.legend(frameon=False, fontsize=8)
plt.show()
