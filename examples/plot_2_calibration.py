"""
Calibration under skewed noise
==============================

A 90 % interval should miss the true value in 5 % of the cases on each side. In this example, functions are drawn from
the prior thousands of times and measured with Gamma noise. We then compare the miss rates of scikit-learn's Gaussian
process with those of the exact law.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sklearn_kernels

from wienerkernel import RBF, Family, WienerKernelRegressor, as_noise, compare
from wienerkernel.experiments.calibration import calibrate
from wienerkernel.palette import LIGHT

# %%
# The experiment
# --------------
#
# There is one sample at each of five inputs, with noise of variance 1. Both models use the true kernel and the true
# mean and variance of the noise; they only differ in the shape of the noise.

noise = as_noise("gamma(0.25, scale=2)")
places, query = np.linspace(-5, 5, 5), np.linspace(-5, 5, 41)
result = calibrate(4.21**2 * RBF(3.59), noise, places, query, n=20_000)
print(result.summary())

# %%
# The same experiment with scikit-learn. All repetitions share the same inputs, so they are fitted as outputs of one
# model.

n = 4000
generator = np.random.default_rng(1)
kernel = sklearn_kernels.ConstantKernel(4.21**2, "fixed") * sklearn_kernels.RBF(3.59, "fixed")
columns = np.concatenate([places, query])[:, None]
values, vectors = np.linalg.eigh(kernel(columns))
f = (vectors * np.sqrt(np.maximum(values, 0))) @ generator.standard_normal((len(columns), n))
y = f[:5] + noise.rvs((5, n), random_state=generator)

gpr = GaussianProcessRegressor(kernel, alpha=noise.var(), optimizer=None).fit(columns[:5], y - noise.mean())
mean, std = gpr.predict(columns[5:], return_std=True)
deviation = (f[5:] - mean) / std
misses = np.stack([np.mean(deviation < -1.6449, axis=1), np.mean(deviation > 1.6449, axis=1)], axis=1)
print("scikit-learn misses below / above: {:.1f} % / {:.1f} %".format(*100 * misses.mean(axis=0)))

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for ax, rates, title in ((axes[0], result.exact, "exact law"), (axes[1], misses, "scikit-learn")):
    ax.axhline(5, color="black", lw=0.8, ls=":")
    ax.plot(query, 100 * rates[:, 0], color=LIGHT["mean"], label="true value below the interval")
    ax.plot(query, 100 * rates[:, 1], color=LIGHT["function-line"], label="true value above the interval")
    ax.set(title=title, xlabel="$x$", ylim=(0, 10))
    ax.margins(x=0)
axes[0].set_ylabel("miss rate in %")
axes[1].legend(frameon=False, fontsize=8)
plt.show()

# %%
# In total, the Gaussian interval covers slightly more than 90 %, but it is not centered correctly. If only one side
# matters (a safety margin, a stock level, a dose), its miss rate is wrong by a large factor.
#
# Unknown noise
# -------------
#
# With more samples, the law of the noise can be estimated. We assume that the noise is known to be nonnegative, so we
# set the location of the :class:`~wienerkernel.Family` and estimate its shape and scale together with the kernel.
# `tuning="likelihood"` first estimates the kernel and the variance, then the shape. `tuning="loo"` maximizes the
# leave-one-out log score under the exact law over all parameters together.

generator = np.random.default_rng(2)
X = np.sort(generator.uniform(-5, 5, 80))[:, None]
y = np.sin(X[:, 0]) + generator.gamma(0.7, 0.4, 80)
gamma = Family("gamma", loc=0.0)
models = {
    "normal": WienerKernelRegressor().fit(X, y),
    "gamma, likelihood": WienerKernelRegressor(noise=gamma).fit(X, y),
    "gamma, loo": WienerKernelRegressor(noise=gamma, tuning="loo").fit(X, y),
}
print(compare(models))
for name, model in models.items():
    rmse = np.sqrt(np.mean((model.predict(X) + model.noise_.mean() - np.sin(X[:, 0]) - 0.28) ** 2))
    variance, third = model.noise_.cumulants(3)[1:]
    skewness = third / variance**1.5
    print(f"{name:<18} noise: std {variance**0.5:.3f}, skewness {skewness:.2f}; rms error {rmse:.3f}")
print(f"{'truth':<18} noise: std {0.4 * 0.7**0.5:.3f}, skewness {2 / 0.7**0.5:.2f}")

# %%
# Differences should be judged relative to their standard errors. The diagnostics show the reason: under the normal law,
# the probability integral transforms (PIT) are far from uniform, and the residuals deviate from the line.

figure, axes = plt.subplots(2, 3, figsize=(9.5, 6), layout="constrained")
for row, name in zip(axes, ("normal", "gamma, loo"), strict=True):
    models[name].score_report().plot(ax=row)
    row[0].set_ylabel(f"{name}: samples")
plt.show()
