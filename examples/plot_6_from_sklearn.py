"""
Comparison with scikit-learn
============================

This example fits the same data with `GaussianProcessRegressor` and `WienerKernelRegressor`, and shows what is the same
and what is new. For a table of names, see :doc:`/coming_from_sklearn`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.model_selection import KFold, cross_val_score

from wienerkernel import RBF, Mixture, WienerKernelRegressor
from wienerkernel.palette import LIGHT

generator = np.random.default_rng(0)
X = np.sort(generator.uniform(0, 10, 40))[:, None]
y = np.sin(X[:, 0]) + generator.normal(0, 0.2, 40)
grid = np.linspace(0, 10, 200)[:, None]

# %%
# The same model
# --------------
#
# With normal noise and the default ridge, the mean and the standard deviation are the same as in scikit-learn. Instead
# of the variance `alpha`, we specify the law `noise`; `optimizer=None` becomes `tuning=None`. scikit-learn assumes the
# mean 0, which is `trend=None`; the default here is an unknown constant.

gpr = GaussianProcessRegressor(1.5 * sk.RBF(1.2), alpha=0.04, optimizer=None).fit(X, y)
model = WienerKernelRegressor(1.5 * RBF(1.2), noise="norm(0, 0.2)", trend=None, tuning=None).fit(X, y)
mean, std = gpr.predict(grid, return_std=True)
ours, spread = model.predict(grid, return_std=True)
print(f"largest difference of the means {np.abs(mean - ours).max():.0e}")
print(f"largest difference of the standard deviations {np.abs(std - spread).max():.0e}")
print(f"log-likelihood {gpr.log_marginal_likelihood_value_:.6f} and {model.log_likelihood():.6f}")

# %%
# The same tuning
# ---------------
#
# In scikit-learn, unknown noise variance is modeled by a `WhiteKernel`. In `wienerkernel`, noise is not part of the
# kernel: `noise=None`, the default, is normal noise whose variance is tuned together with the kernel. scikit-learn's
# kernels are accepted. Weak priors shift the values by a small fraction of their standard errors; bounds that differ
# from the defaults replace the priors.

gpr = GaussianProcessRegressor(1.0 * sk.RBF(1.0) + sk.WhiteKernel(1.0)).fit(X, y)
model = WienerKernelRegressor(1.0 * sk.RBF(1.0), trend=None).fit(X, y)
print(gpr.kernel_)
print({name: round(value, 3) for name, value in model.tuning_result_.parameters.items()})
print(f"log-likelihood {gpr.log_marginal_likelihood_value_:.4f} and {model.log_likelihood():.4f}")

# %%
# With a `WhiteKernel`, scikit-learn's `predict(..., return_std=True)` includes the noise. In `wienerkernel`, it is
# always the standard deviation of f; for a new observation, use `of="observation"`.

print("scikit-learn:", gpr.predict([[5.0]], return_std=True)[1].round(4))
print("wienerkernel, f:", model.predict([[5.0]], return_std=True)[1].round(4))
print("wienerkernel, observation:", model.predict_distribution([[5.0]], of="observation").std().round(4))

# %%
# The same ecosystem
# ------------------
#
# Cross-validation, grid search and pipelines work as usual.

folds = KFold(5, shuffle=True, random_state=0)
print("cross-validated R2:", cross_val_score(WienerKernelRegressor(), X, y, cv=folds).mean().round(3))

# %%
# What is new
# -----------
#
# The variance is split by cause, and the noise can have any law. Here it is a mixture: a fifth of the samples have an
# offset of 1.2.

noise = Mixture(["norm(0, 0.1)", "norm(1.2, 0.1)"], weights=[0.8, 0.2])
y = np.sin(X[:, 0]) + noise.rvs(40, random_state=1)
mixed = WienerKernelRegressor(1.0 * RBF(1.0), noise=noise).fit(X, y)
gpr = GaussianProcessRegressor(1.0 * sk.RBF(1.0) + sk.WhiteKernel(1.0)).fit(X, y)
mean, std = gpr.predict(grid, return_std=True)
low, high = mixed.predict_interval(grid, 0.9).T

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True, layout="constrained")
axes[0].fill_between(grid[:, 0], mean - 1.645 * std, mean + 1.645 * std, color=LIGHT["observation"], lw=0)
axes[0].plot(grid, mean, color=LIGHT["mean"])
axes[0].set(title="GaussianProcessRegressor", xlabel="$x$")
label = "90 % of new observations"
axes[1].fill_between(grid[:, 0], low, high, color=LIGHT["observation"], lw=0, label=label)
axes[1].plot(grid, mixed.predict(grid), color=LIGHT["mean"], label="estimate of f")
axes[1].set(title="WienerKernelRegressor, known noise", xlabel="$x$")
for ax in axes:
    ax.plot(X, y, "k.", ms=4, label="data")
    ax.plot(grid, np.sin(grid), color=LIGHT["truth"], lw=1, label="true function")
    ax.margins(x=0)
handles, labels = axes[1].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
plt.show()

# %%
# `GaussianProcessRegressor` estimates the mean of the readings, `WienerKernelRegressor` estimates f. For the next
# observation, the former predicts a bell curve, the latter the true shape: two peaks, one four times as likely as the
# other.

new = mixed.predict_distribution([[5.0]], of="observation")
at, spread = (float(value[0]) for value in gpr.predict([[5.0]], return_std=True))
readings = np.linspace(-2.5, 1.5, 400)
bell = np.exp(-0.5 * ((readings - at) / spread) ** 2) / (spread * np.sqrt(2 * np.pi))
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
ax.plot(readings, bell, color=LIGHT["observation-line"], label="GaussianProcessRegressor")
ax.plot(readings, new.pdf(readings[:, None])[:, 0], color=LIGHT["mean"], label="WienerKernelRegressor")
ax.axvline(np.sin(5.0), color=LIGHT["truth"], lw=1, label="true f(5)")
ax.set(xlabel="next observation at $x = 5$", ylabel="density", ylim=(0, None))
ax.legend(frameon=False, fontsize=9)
plt.show()

truth = np.sin(grid[:, 0])
for name, estimate in {
    "scikit-learn": mean,
    "minus the mean of the noise": mean - noise.mean(),
    "wienerkernel": mixed.predict(grid),
}.items():
    print(f"rms error of f, {name:<28}{np.sqrt(np.mean((estimate - truth) ** 2)):.3f}")
parts = mixed.uncertainty([[5.0]])
for name in ("noise", "model", "aleatoric"):
    print(f"variance at 5, {name:<10}{getattr(parts, name)[0]:.4f}")
