"""
Calibrate an instrument
=======================

A flow meter is read at known flows, several times each. Its readings are never too low by much, but bubbles make some of
them too high, and more so at large flows. The calibration curve, its uncertainty and the inverse, from a reading to the
flow, follow from one model.
"""

import matplotlib.pyplot as plt
import numpy as np

from wienerkernel import WienerKernelRegressor

rng = np.random.default_rng(4)
flow = np.repeat(np.linspace(0.5, 10.0, 12), 6)


def response(x):
    """The unknown response of the meter, in volts."""
    return 1.2 * np.sqrt(x) + 0.05 * x


def data_sheet(X):
    """The standard deviation of a reading, which the manufacturer states."""
    return 0.02 + 0.012 * X[:, 0]


skewed = (rng.gamma(0.5, 1.0, flow.size) - 0.5) / np.sqrt(0.5)
reading = response(flow) + data_sheet(flow[:, None]) * skewed

# %%
# The noise has the level of the data sheet and the shape of a gamma law of mean 0 and variance 1.
# `noise_level=` takes the level, `noise=` the shape.

shape = "gamma(0.5, loc=-0.70710678, scale=1.41421356)"
model = WienerKernelRegressor(noise=shape, noise_level=data_sheet).fit(flow[:, None], reading)
x = np.linspace(0.2, 11.0, 300)
low, high = model.predict_interval(x[:, None], 0.95).T

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.fill_between(x, low, high, color="0.85", label="95 % of readings")
left.plot(x, model.predict(x[:, None]), label="calibration curve")
left.plot(x, response(x), "k:", label="true response")
left.plot(flow, reading, "k.", markersize=3)
left.set(xlabel="flow", ylabel="reading (V)", title="Calibration curve")
left.legend()

parts = model.uncertainty(x[:, None])
right.plot(x, np.sqrt(parts.noise), label="noise in the data")
right.plot(x, np.sqrt(parts.model), label="unexplored inputs")
right.plot(x, np.sqrt(parts.aleatoric), label="noise of the observation")
right.set(
    xlabel="flow", ylabel="standard deviation (V)", title="Where the uncertainty comes from", yscale="log"
)
right.legend()

# %%
# From a reading back to the flow: the flows for which the reading is not surprising, that is, for which it lies between
# the 2.5 % and 97.5 % quantiles of a new observation. The set covers the true flow with probability 95 %, because the
# interval of the reading does.

new = 3.1
inside = (low <= new) & (new <= high)
print(f"A reading of {new} V means a flow between {x[inside].min():.2f} and {x[inside].max():.2f}.")

# %%
# Is that so? Forty instruments are calibrated in the same way, and each is tried at fifty random flows:

above = below = 0
for _ in range(40):
    y = response(flow) + data_sheet(flow[:, None]) * (rng.gamma(0.5, 1.0, flow.size) - 0.5) / np.sqrt(0.5)
    curve = WienerKernelRegressor(model.kernel_, noise=shape, noise_level=data_sheet, tuning=None).fit(
        flow[:, None], y
    )
    truth = rng.uniform(1.0, 9.5, (50, 1))
    y = response(truth[:, 0]) + data_sheet(truth) * (rng.gamma(0.5, 1.0, 50) - 0.5) / np.sqrt(0.5)
    lower, upper = curve.predict_interval(truth, 0.95).T
    above, below = above + np.sum(y > upper), below + np.sum(y < lower)
print(f"too high: {above / 2000:.1%}, too low: {below / 2000:.1%}; 2.5 % each are expected.")

# %%
# How many more readings are needed to know the curve at a flow of 5 to within 5 mV?

need = model.samples_needed([[5.0]], std=0.005)
print(f"{int(need.number[0])} more readings there.")
