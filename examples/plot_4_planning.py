"""
Planning an experiment
======================

Where should we measure next, and how often? The variance after a new sample does not depend on its value, so it is
known before the sample is taken, and plans can be computed exactly.
"""

import matplotlib.pyplot as plt
import numpy as np

from wienerkernel import RBF, TubeDisplay, WienerKernelRegressor
from wienerkernel.palette import LIGHT

# %%
# The system of the paper has been measured once at each of three inputs.


def truth(x):
    """Right-hand side of eq. (15) of the paper."""
    return 0.01 * x**3 - 0.2 * x**2 + 0.2 * x


generator = np.random.default_rng(0)
X = np.array([[-5.0], [0.0], [5.0]])
y = truth(X[:, 0]) + generator.gamma(0.25, 2, 3)
model = WienerKernelRegressor(4.21**2 * RBF(3.59), noise="gamma(0.25, scale=2)", trend=None, tuning=None).fit(
    X, y
)

# %%
# How many samples?
# -----------------
#
# Lemma 3 of the paper bounds the noise part after N samples at x by s2 / N, and the same bound holds for the sum of
# both parts. Hence ceil(s2 / std^2) samples always suffice. The exact number is never larger, and it is smaller if the
# existing samples already provide enough information.

print("   x   std now   target   exact N   bound of Lemma 3")
for x, target in [(0.0, 0.5), (0.0, 0.2), (2.5, 0.5), (2.5, 0.2)]:
    plan = model.samples_needed([[x]], std=target)
    print(f"{x:4.1f} {plan.before[0]:9.3f} {target:8.2f} {plan.number[0]:9d} {plan.paper_bound[0]:12d}")

# %%
# Where to sample next?
# ---------------------
#
# :meth:`~wienerkernel.WienerKernelRegressor.next_sample` greedily chooses the inputs that reduce the average (or the
# largest) epistemic variance most. For each of them, it reports whether the sample mainly averages noise or mainly
# explores a new input.

candidates = np.linspace(-5, 5, 41)[:, None]
plan = model.next_sample(candidates, n_samples=12)
print("step      x   noise V   model P2   mainly")
rows = zip(plan.points[:, 0], plan.noise, plan.model, plan.repeat, strict=True)
for k, (x, noise, part, repeat) in enumerate(rows, start=1):
    why = "averages noise" if repeat else "explores a new input"
    print(f"{k:4d} {x:6.2f} {noise:9.3f} {part:10.4f}   {why}")
print("average variance before and after:", plan.variance[[0, -1]].round(3))

# %%
# After these measurements, the model has the planned variance.

planned = plan.points
after = WienerKernelRegressor(4.21**2 * RBF(3.59), noise="gamma(0.25, scale=2)", trend=None, tuning=None).fit(
    X, y
)
after.partial_fit(planned, truth(planned[:, 0]) + generator.gamma(0.25, 2, len(planned)))
print("average variance of the new model:", after.uncertainty(candidates).epistemic.mean().round(3))

grid = np.linspace(-6, 6, 241)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
for ax, fitted, title in ((axes[0], model, "three samples"), (axes[1], after, "and twelve more, as planned")):
    TubeDisplay.from_estimator(fitted, grid, ax=ax)
    ax.plot(grid, truth(grid), color=LIGHT["truth"], label="true function")
    samples = fitted.posterior_.smoother.places[:, 0]
    ax.plot(samples, np.full(len(samples), -13.5), "k|", ms=10, label="sampled inputs")
    ax.set(title=title, xlabel="$x$", ylim=(-14, 5))
    ax.margins(x=0)
axes[0].legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.55, 0.06))
plt.show()

# %%
# Repeated samples
# ----------------
#
# When an input outside the data is sampled repeatedly, the model part drops immediately, followed by the noise part, as
# given by the formulas in :doc:`/method`. The noise part alone *increases* at first: far from the data, the estimate
# hardly depends on them, and hence on their noise. Therefore, targets should be set for the sum of both parts.

repeats = np.arange(0, 31)
parts = []
for n in repeats:
    grown = WienerKernelRegressor(4.21**2 * RBF(3.59), noise="gamma(0.25, scale=2)", trend=None, tuning=None)
    grown.fit(np.vstack([X, np.full((n, 1), 8.0)]), np.zeros(3 + n))
    u = grown.uncertainty([[8.0]])
    parts.append((u.noise[0], u.model[0]))
noise, part = np.array(parts).T
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(repeats, noise + part, color=LIGHT["text"], label="both")
ax.plot(repeats, noise, color=LIGHT["estimate-line"], label="noise part V")
ax.plot(repeats, part, color=LIGHT["function-line"], label="model part P2")
ax.plot(repeats[1:], 1 / repeats[1:], color="black", ls=":", label="bound of Lemma 3 for V, s2 / N")
ax.set(xlabel="samples at $x = 8$", ylabel="variance at $x = 8$", yscale="log", ylim=(1e-4, 20))
ax.legend(frameon=False, fontsize=8)
plt.show()
