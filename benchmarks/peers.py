"""Probabilistic regression with other packages: each function fits to (X, y) and returns the law of y at new inputs.

A law has ``logpdf``, ``cdf``, ``sf``, ``ppf`` and ``isf``, or is a :class:`Quantiles`. None says that the method does
not apply to the data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize.elementwise import find_root

Method = Callable[[np.ndarray, np.ndarray, np.ndarray], Any]
LEVELS = np.arange(0.01, 1.0, 0.02)
"""Levels of predicted quantiles: midpoints of 50 cells, so that mean pinball losses are integrals over the levels."""


class Quantiles:
    """What is known of a law from its quantiles at `LEVELS`, an array of shape (m, 50)."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = np.sort(values, axis=1)  # quantiles that were estimated apart may cross

    def at(self, level: float) -> np.ndarray:
        return self.values[:, np.argmin(np.abs(LEVELS - level))]

    def crps(self, y: np.ndarray) -> np.ndarray:
        """Twice the mean quantile score (Gneiting and Raftery 2007)."""
        below = y[:, None] - self.values
        return 2 * np.mean(np.where(below > 0, LEVELS, LEVELS - 1) * below, axis=1)


class StudentMixture:
    """Student's t about a location that is itself N(mean, std^2)."""

    def __init__(self, mean: np.ndarray, std: np.ndarray, df: float, scale: float) -> None:
        nodes, weights = np.polynomial.hermite_e.hermegauss(100)
        self.parts = stats.t(df, loc=mean[:, None] + std[:, None] * nodes, scale=scale)
        self.weights = weights / weights.sum()

    def _average(self, name: str, y: np.ndarray) -> np.ndarray:
        return np.sum(getattr(self.parts, name)(np.asarray(y)[..., None]) * self.weights, axis=-1)

    def cdf(self, y: np.ndarray) -> np.ndarray:
        return self._average("cdf", y)

    def sf(self, y: np.ndarray) -> np.ndarray:
        return self._average("sf", y)

    def logpdf(self, y: np.ndarray) -> np.ndarray:
        return np.log(self._average("pdf", y))

    def ppf(self, level: float) -> np.ndarray:
        ends = self.parts.ppf(level).min(axis=-1), self.parts.ppf(level).max(axis=-1)
        rows = np.arange(len(ends[0]))

        def excess(y: np.ndarray, row: np.ndarray) -> np.ndarray:
            at = ends[0].copy()
            at[row] = y
            return self.cdf(at)[row] - level

        return find_root(excess, ends, args=(rows,)).x

    def isf(self, level: float) -> np.ndarray:
        return self.ppf(1 - level)


def on_log(method: Method) -> Method:
    """A method with a normal prediction, applied to log y."""

    def law(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Any:
        if np.any(y <= 0):
            return None
        normal = method(X, np.log(y), new)
        return stats.lognorm(normal.std(), scale=np.exp(normal.mean()))

    return law


def gpr(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel()
    model = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=1, random_state=0)
    mean, std = model.fit(X, y).predict(new, return_std=True)
    return stats.norm(mean, std)


def hetgpy(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Any:
    from hetgpy import hetGP

    model = hetGP()
    scale = y.std()
    model.mle(X, (y - y.mean()) / scale)
    found = model.predict(new)
    return stats.norm(y.mean() + scale * found["mean"], scale * np.sqrt(found["sd2"] + found["nugs"]))


def student_vgp(X: np.ndarray, y: np.ndarray, new: np.ndarray, steps: int = 400) -> Any:
    """GPyTorch: variational GP with Student noise, every training input an inducing point."""
    import gpytorch
    import torch

    torch.manual_seed(0)

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self, places: Any) -> None:
            distribution = gpytorch.variational.CholeskyVariationalDistribution(len(places))
            super().__init__(
                gpytorch.variational.VariationalStrategy(
                    self, places, distribution, learn_inducing_locations=False
                )
            )
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(
                gpytorch.kernels.RBFKernel(ard_num_dims=places.shape[1])
            )

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    center, scale = y.mean(), y.std()
    inputs, outputs = torch.tensor(X), torch.tensor((y - center) / scale)
    model = Model(torch.unique(inputs, dim=0)).double()
    likelihood = gpytorch.likelihoods.StudentTLikelihood().double()
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(y))
    optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = -bound(model(inputs), outputs)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        latent = model(torch.tensor(new))
        mean, std = latent.mean.numpy(), latent.variance.sqrt().numpy()
        df, noise = float(likelihood.deg_free), float(likelihood.noise.sqrt())
    return StudentMixture(center + scale * mean, scale * std, df, scale * noise)


def ngboost(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Any:
    from ngboost import NGBRegressor

    model = NGBRegressor(
        n_estimators=1000, validation_fraction=0.2, early_stopping_rounds=30, verbose=False, random_state=0
    )
    found = model.fit(X, y).pred_dist(new)
    return stats.norm(found.params["loc"], found.params["scale"])


def quantile_forest(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Any:
    from quantile_forest import RandomForestQuantileRegressor

    model = RandomForestQuantileRegressor(500, min_samples_leaf=5, random_state=0).fit(X, y)
    return Quantiles(np.asarray(model.predict(new, quantiles=LEVELS.tolist())))


def mapie(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> Any:
    """MAPIE's CV+ about a random forest: intervals of 25 confidences are quantiles at 50 levels.

    Confidences c that need more samples than there are, 1 / c or 1 / (1 - c), are moved to the nearest possible ones.
    """
    from mapie.regression import CrossConformalRegressor
    from sklearn.ensemble import RandomForestRegressor

    confidence = np.clip(1 - 2 * LEVELS[: len(LEVELS) // 2], 2 / len(y), 1 - 2 / len(y))
    distinct, index = np.unique(confidence, return_inverse=True)
    forest = RandomForestRegressor(200, min_samples_leaf=3, random_state=0)
    model = CrossConformalRegressor(forest, confidence_level=distinct.tolist(), method="plus", cv=10)
    _, ends = model.fit_conformalize(X, y).predict_interval(new)
    return Quantiles(np.concatenate([ends[:, 0, index], ends[:, 1, index][:, ::-1]], axis=1))


PEERS: dict[str, Method] = {
    "GPR": gpr,
    "GPR log": on_log(gpr),
    "hetgpy": hetgpy,
    "hetgpy log": on_log(hetgpy),
    "Student VGP": student_vgp,
    "NGBoost": ngboost,
    "quantile forest": quantile_forest,
    "MAPIE": mapie,
}
