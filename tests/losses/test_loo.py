"""The leave-one-out error of a loss, against refits, and tuning by it."""

import itertools

import numpy as np
import pytest
from scipy import integrate

from wienerkernel import RBF, EpsilonInsensitive, Huber, Pinball, WienerKernelRegressor, as_noise
from wienerkernel.losses.coordinates import Coordinates, Observed
from wienerkernel.losses.estimate import spectrum
from wienerkernel.losses.score import Score
from wienerkernel.losses.solver import loss_of_residuals, minimize_loss
from wienerkernel.losses.tuning import leave_one_out_loss


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-5, 5, n))[:, None]
    return X, np.sin(X[:, 0]) + 0.5 * rng.standard_t(3, n)


@pytest.mark.parametrize("trend", [None, "constant"])
@pytest.mark.parametrize("loss", [Huber(0.5), Pinball(0.3), EpsilonInsensitive(0.2)], ids=repr)
def test_leave_one_out_error_against_refits(loss, trend):
    X, y = data(40)
    noise = as_noise("t(3, scale=0.5)")
    curve, kernel = loss.curve(noise), 2.0 * RBF(1.5)
    observed = Observed.of(X, y, np.ones(40))
    c = Coordinates.at(kernel, X, trend)
    score = Score.of(curve, noise, spectrum(c, observed))
    lam = score.square / score.slope
    found = leave_one_out_loss(c, observed, curve, score, lam)
    errors = []
    for i in range(40):
        rest = np.arange(40) != i
        w = minimize_loss(c.phi[rest], c.precision, y[rest, None] - score.center, curve, lam).w[:, 0]
        z = y[i] - score.center - c.phi[i] @ w
        parts = np.sort(np.clip(curve.r, min(z, 0.0), max(z, 0.0)))  # psi is linear between them
        ends = np.concatenate([[min(z, 0.0)], parts, [max(z, 0.0)]])
        errors.append(
            np.sign(z)
            * sum(
                integrate.quad(lambda r: np.interp(r, curve.r, curve.u), *pair)[0]
                for pair in itertools.pairwise(ends)
            )
        )
    assert found == pytest.approx(np.mean(errors), rel=1e-6)


def test_the_loss_itself():
    """Of Huber, of a quantile, and with two steps, from their derivatives."""
    z = np.array([0.0, 0.3, -0.5, 2.0])
    for loss, expected in (
        (Huber(0.5), [0.0, 0.045, 0.125, 0.125 + 0.75]),
        (Pinball(0.2), [0.0, 0.06, 0.4, 0.4]),
        (EpsilonInsensitive(0.2), [0.0, 0.1, 0.3, 1.8]),
    ):
        np.testing.assert_allclose(loss_of_residuals(loss.curve(None), z), expected, atol=1e-12)


@pytest.mark.parametrize("loss", ["efficient", Huber(0.5)], ids=str)
def test_tuning_by_the_leave_one_out_error(loss):
    X, y = data(50)
    y[25] += 9  # an outlier
    options = {"noise": "t(3, scale=0.5)", "loss": loss, "random_state": 0}
    model = WienerKernelRegressor(2.0 * RBF(0.05), tuning="loo", **options).fit(X, y)
    assert model.tuning_result_.method == "loo"
    assert 0.3 < np.exp(model.kernel_.theta[-1]) < 6
    assert np.sqrt(np.mean((model.predict(X) - np.sin(X[:, 0])) ** 2)) < 0.4
