"""
Learning a dynamical system
===========================

The example of the paper is a dynamical system. We learn its transition function from noisy transitions and simulate it
over many steps, with the uncertainty split by cause.
"""

import matplotlib.pyplot as plt
import numpy as np

from wienerkernel import RBF, Dynamics, WienerKernelRegressor
from wienerkernel.palette import LIGHT

# %%
# The system
# ----------
#
# The state follows :math:`x_{k+1} = 0.01 x_k^3 - 0.2 x_k^2 + 0.2 x_k + M_{k+1}` with Gamma noise :math:`M`, which is
# never negative. 25 transitions from states between -5 and 5 are known. The noise is process noise: it disturbs the
# state, and the data are next states.


def system(x):
    """Return the next state without noise."""
    return 0.01 * x**3 - 0.2 * x**2 + 0.2 * x


noise = "gamma(0.25, scale=0.4)"
generator = np.random.default_rng(3)
X = np.linspace(-5, 5, 25)[:, None]
y = system(X[:, 0]) + generator.gamma(0.25, 0.4, 25)
model = WienerKernelRegressor(4.21**2 * RBF(3.59), noise=noise, tuning=None).fit(X, y)
dynamics = Dynamics(model)

# %%
# Many steps
# ----------
#
# Each path has one random function, drawn from the law of the model, and uses it in all steps. `causes=True`, the
# default, simulates each path eight times, with two copies of each cause, to split the variance.

start, steps = [-3.0], 12
rollout = dynamics.rollout(start, steps=steps, n_paths=2000, random_state=0)
print(rollout)
print(rollout.causes)

true = np.full((2000, steps + 1), start[0])
for k in range(steps):
    true[:, k + 1] = system(true[:, k]) + generator.gamma(0.25, 0.4, 2000)

# sphinx_gallery_thumbnail_number = 1
(ax,) = rollout.plot()
ax.plot(true[:5].T, color=LIGHT["truth"], lw=0.7)
ax.plot([], [], color=LIGHT["truth"], lw=0.7, label="five runs of the true system")
ax.legend(frameon=False, fontsize=8)
plt.show()

# %%
# The inner tubes show what noise in the data and unexplored inputs contribute, the outer one adds the process noise. The
# exact 90 % interval of the model covers the runs of the true system:

low, high = np.moveaxis(rollout.quantiles([0.05, 0.95]), -1, 0)
inside = np.mean((true >= low[:, 0]) & (true <= high[:, 0]), axis=0)
print("coverage by step:", inside[1:].round(3))

# %%
# One step and several
# --------------------
#
# After one step, the state has the law of a new observation, and the causes are the parts of its variance. After
# several steps there is an interaction: a function that is steeper than expected also amplifies the noise of earlier
# steps.

parts = model.uncertainty([start])
print(f"one step:  noise {parts.noise[0]:.4f}, model {parts.model[0]:.4f}, process {parts.aleatoric[0]:.4f}")
names = ("noise", "model", "process", "interaction")
for k in (1, 2, 5, 12):
    found = ", ".join(
        f"{name} {getattr(rollout.causes, name)[k, 0]:.4f} +- {rollout.causes.errors[name][k, 0]:.4f}"
        for name in names
    )
    print(f"step {k:>2}:   {found}")

# %%
# Why one function per path
# -------------------------
#
# A shortcut draws a new error of the model in each step. Its errors average out, those of one function do not. The
# difference shows in quantities that depend on several steps, here the average of the state over all of them. There are
# only five transitions in this data set, so that much is unknown about the function.

few = WienerKernelRegressor(4.21**2 * RBF(3.59), noise=noise, tuning=None).fit(X[::6], y[::6])
n = 4000
one = Dynamics(few).rollout(start, steps=steps, n_paths=n, causes=False, random_state=1).states[:, 1:, 0]
x, fresh = np.full(n, start[0]), []
for _ in range(steps):
    mean, parts = few.predict(x[:, None], return_uncertainty=True)
    x = mean + np.sqrt(parts.epistemic) * generator.standard_normal(n) + generator.gamma(0.25, 0.4, n)
    fresh.append(x)
averages = one.mean(axis=1), np.mean(fresh, axis=0)
print("standard deviation of the average over all steps:")
print(f"{averages[0].std():.3f} with one function per path, {averages[1].std():.3f} with a new one per step")

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
bins = np.linspace(*np.quantile(averages[0], [0.005, 0.995]), 60)
for average, color, label in (
    (averages[0], LIGHT["function-line"], "one function per path"),
    (averages[1], LIGHT["observation-line"], "a new function in each step"),
):
    ax.hist(average, bins, density=True, histtype="step", color=color, label=label)
ax.set(xlabel=f"average of the state over {steps} steps", ylabel="density")
ax.legend(frameon=False, fontsize=8)
plt.show()

# %%
# A linear approximation
# ----------------------
#
# `tube` linearizes the rollout about the run of the mean. Its law is a linear combination of noise variables, with
# exact quantiles in milliseconds. It is compared with sampled paths, and a warning names the step from which on they
# disagree. Here they agree, but the tails differ where the function is curved.

tube = dynamics.tube(start, steps=steps)
print("largest distance of the distribution functions:", tube.disagreement.max().round(3))
exact, linear = high[:, 0], tube.law([1.0]).ppf(0.95)
print("95 % quantiles, sampled:", exact[1:6].round(3), "linearized:", linear[1:6].round(3))
