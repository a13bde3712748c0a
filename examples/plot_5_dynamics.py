"""
Learning a dynamical system
===========================

A ball rolls in a double well with friction; from almost every initial state, it ends up in one of the two wells. We
learn the one-step map from noisy transitions and simulate it over many steps, propagating the uncertainty.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp

from wienerkernel import RBF, WienerKernelRegressor

# %%
# The system
# ----------
#
# The position :math:`p` satisfies :math:`\ddot p = p - p^3 - 0.3 \dot p`. For 150 random states (position and
# velocity), the state 0.25 time units later is measured with nonnegative noise, as caused by friction in a sensor. The
# law of the noise is known from a calibration of the sensor; its mean is not zero.


def flow(states):
    """Return the states one step later, for states of shape (n, 2)."""

    def slope(_, s):
        p, v = s.reshape(2, -1)
        return np.concatenate([v, p - p**3 - 0.3 * v])

    end = solve_ivp(slope, (0, 0.25), states.T.ravel(), rtol=1e-8, atol=1e-8).y[:, -1]
    return end.reshape(2, -1).T


generator = np.random.default_rng(3)
X = generator.uniform([-1.8, -1.5], [1.8, 1.5], (150, 2))
Y = flow(X) + generator.gamma(0.5, 0.08, (150, 2))

# %%
# The model
# ---------
#
# The model has two outputs and one length scale per input. The kernel is tuned, the noise is given. The model learns
# the step, that is, the difference between successive states.

model = WienerKernelRegressor(RBF([1.0, 1.0]) * 1.0, noise="gamma(0.5, scale=0.08)").fit(X, Y - X)
print({name: round(value, 3) for name, value in model.tuning_result_.parameters.items()})
test = generator.uniform([-1.8, -1.5], [1.8, 1.5], (1000, 2))
error = model.predict(test) + test - flow(test)
parts = model.uncertainty(test)
print(f"rms error of one step {np.sqrt(np.mean(error**2)):.4f}")
print(f"predicted             {np.sqrt(parts.epistemic.mean()):.4f}")
print(f"noise of a measurement {model.noise_.std():.4f}, its mean {model.noise_.mean():.4f}")

# %%
# The following figure shows where the uncertainty of one step comes from. Near the data, it is mainly noise in the
# data. Outside, both parts increase: the inputs are unexplored, and extrapolation amplifies the noise. Both outputs
# have the same variances, because the noise is given.

p, v = np.meshgrid(np.linspace(-2.2, 2.2, 90), np.linspace(-1.9, 1.9, 90))
parts = model.uncertainty(np.column_stack([p.ravel(), v.ravel()]))
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
for ax, part, title in (
    (axes[0], parts.noise, "noise in the data"),
    (axes[1], parts.model, "unexplored inputs"),
):
    image = ax.pcolormesh(
        p, v, np.sqrt(part[:, 0]).reshape(p.shape), vmin=0, vmax=0.06, cmap="viridis", rasterized=True
    )
    ax.plot(*X.T, "w.", ms=2)
    ax.set(title=title, xlabel="position")
axes[0].set_ylabel("velocity")
figure.colorbar(image, ax=axes, label="standard deviation of a step")
plt.show()

# %%
# Many steps
# ----------
#
# Each draw of the noise corresponds to one function, the estimate from the data with that noise removed. A consistent
# simulation uses *the same* function in all steps. We draw 200 functions as the outputs of one model, which is fitted
# to the measurements minus drawn noise, and simulate one particle per function. The model part, which is small near the
# data, is approximated by independent normal noise in each step.
#
# `predictor()` returns a function that skips input checks and takes only microseconds per call, which suits
# simulations.

n = 200
draws = model.noise_.rvs((150, 2, n), random_state=generator) - model.noise_.mean()
functions = WienerKernelRegressor(model.kernel_, noise=model.noise_, tuning=None)
functions.fit(X, ((Y - X)[:, :, None] - draws).reshape(150, 2 * n))
step = functions.predictor()
nominal = model.predictor()


def simulate(start, n_steps=60):
    """Return the states of all particles, of the mean model and of the true system."""
    particles, mean, true = [np.tile(start, (n, 1))], [np.array(start)], [np.array([start])]
    own = np.arange(n)
    for _ in range(n_steps):
        f, _, part = step(particles[-1])  # (n, 2 n): all functions at all particles, of equal variance
        move = f.reshape(n, 2, n)[own, :, own]
        noise = np.sqrt(part[:, :1]) * generator.standard_normal((n, 2))
        particles.append(particles[-1] + move + noise)
        mean.append(mean[-1] + nominal(mean[-1])[0])
        true.append(flow(true[-1]))
    return np.array(particles), np.array(mean), np.array(true)[:, 0]


# sphinx_gallery_thumbnail_number = 2
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
time = 0.25 * np.arange(61)
for ax, start in zip(axes, ((0.5, 0.4), (-1.5, 0.85)), strict=True):
    particles, mean, true = simulate(start)
    positions = particles[:, :, 0]
    ax.plot(time, positions, color="#4dbf9c", lw=0.4, alpha=0.4)
    for low, high, color in ((0.05, 0.95, "#e1e4e9"), (0.25, 0.75, "#9ccbec")):
        tube = np.quantile(positions, [low, high], axis=1)
        ax.fill_between(
            time, *tube, color=color, alpha=0.5, lw=0, label=f"{100 * (high - low):.0f} % of particles"
        )
    ax.plot(time, mean[:, 0], color="#c44f00", label="mean model")
    ax.plot(time, true[:, 0], color="#7b2d8e", ls="--", label="true system")
    ax.set(title=f"initial state {start}", xlabel="time", ylim=(-2, 2))
    ax.margins(x=0)
    right = np.mean(positions[-1] > 0)
    print(
        f"initial state {start}: {100 * right:.0f} % of the particles end in the right well, "
        f"the true system at {true[-1, 0]:.2f}"
    )
axes[0].set_ylabel("position")
axes[0].legend(frameon=False, fontsize=8, loc="lower right")
plt.show()

# %%
# From the first initial state, the tube stays narrow. From the second, the ball passes close to the boundary between
# the wells: the particles split into two groups, which no interval around a mean can represent.
