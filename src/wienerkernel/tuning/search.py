"""The order of the searches: kernel and variance by the likelihood, shapes by the leave-one-out score, then all at once.

Shapes of a family always come from the leave-one-out score, since the likelihood does not depend on them. Large data
are searched on nested subsets of the rows first: a maximum on a fraction of the rows is a good start, and its
curvature makes the steps on all rows few.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._typing import FloatArray, IntArray, RandomState
from ..kernels import Kernel
from ..noise import Noise
from ..noise.base import as_generator
from ..noise.family import Family, NoiseModel, ScaledShape, noise_model
from ..noise.level import NoiseLevel
from ..transform import Transform
from .data import Data, Parameters
from .likelihood import Likelihood, relative_scales
from .loo_score import LeaveOneOutScore
from .optimizer import FAILURES, Objective, Optimizer
from .residuals import outside_support, residual_shape, shape_of_subset
from .search_box import SearchBox, default_kernel, has_free_scale, search_box, variance_at_odds
from .starts import nested_subsets, shape_starts, starting_points

__all__ = ["METHODS", "TuningResult", "tune"]

METHODS = ("likelihood", "loo")
FLAT = 1e-7
"""Largest derivative per sample with respect to a parameter that the data do not determine."""
MENTIONED = 10
"""Names of parameters that a warning lists at most."""
RESIDUAL_ROUNDS = 2


@dataclass(frozen=True)
class TuningResult:
    """Tuned kernel and noise.

    Attributes
    ----------
    kernel : Kernel
    noise : Noise
    ridge : float
        The given one, or the noise variance.
    method : {"likelihood", "loo"}
    value : float
        Value of the objective, a sum over samples, without the priors: the Gaussian log-likelihood or the
        leave-one-out log score.
    parameters : dict of str to float
        All free parameters by name: kernel hyperparameters, ``noise.std``, shapes of the noise.
    n_evaluations : int
        Evaluations of the objectives, on all of the data or on a subset.
    level : Level, callable or None
        The noise level s(x), learned or given.
    transform : Transform or None
        The transform of the response, with its exponent.
    level_evidence : float or None
        Gain in log evidence that a learned level brings over a constant one; the lower it is, the less the level varies.
        None if no level was learned: it was not asked for, or there were too few samples.
    transform_gain : float or None
        Gain in log posterior density that a learned exponent brings over no transform; None if none was learned.
    shape_gain : float or None
        Gain in the leave-one-out log score over normal noise, where ``noise="auto"`` found another shape; 0 if it kept
        normal noise, None without ``"auto"``.
    output_scale : ndarray of shape (n_y,)
        Output k has the noise times ``output_scale[k]`` and the kernel times its square. The scales multiply to 1.

    Examples
    --------
    >>> from wienerkernel import RBF, WienerKernelRegressor
    >>> X = np.linspace(0, 6, 20)[:, None]
    >>> model = WienerKernelRegressor(RBF(1.0), noise="norm(0, 0.1)").fit(X, np.sin(X[:, 0]))
    >>> model.tuning_result_.method, sorted(model.tuning_result_.parameters)
    ('likelihood', ['kernel.length_scale'])
    """

    kernel: Kernel
    noise: Noise
    ridge: float
    method: str
    value: float
    parameters: dict[str, float] = field(default_factory=dict)
    n_evaluations: int = 0
    output_scale: FloatArray = field(default_factory=lambda: np.ones(1))
    level: NoiseLevel | None = None
    transform: Transform | None = None
    level_evidence: float | None = None
    transform_gain: float | None = None
    shape_gain: float | None = None


def tune(
    data: Data,
    kernel: Kernel | None = None,
    noise: Any = None,
    *,
    method: str = "likelihood",
    n_restarts: int = 0,
    random_state: RandomState = None,
    shapes: bool = True,
) -> TuningResult:
    """Find the free parameters of the kernel, by default :func:`default_kernel`, and of the noise.

    Without ``shapes``, the likelihood leaves the shapes of the noise in the middle of their ranges. A ``ConvergenceWarning``
    tells of bounds, parameters that the data do not determine, and searches that failed.
    """
    if method not in METHODS:
        msg = f"tuning must be one of {', '.join(map(repr, METHODS))}, or None for values as given, got {method!r}"
        raise ValueError(msg)
    if method == "loo" and data.noise_scale.ndim == 2:
        msg = "tuning by 'loo' needs independent noise: noise_scale must be of shape (n,); use tuning='likelihood'"
        raise ValueError(msg)
    model = noise_model(noise)
    search = _Search(data, kernel, model, n_restarts, as_generator(random_state))
    search.kernel(data.samples.places[:1])  # raises if the kernel does not fit the inputs
    parameters, values, value = search.run(model, method, shapes)
    search.warn(parameters, values)
    fitted = parameters.noise_at(values)
    return TuningResult(
        kernel=parameters.kernel_at(values),
        noise=fitted,
        ridge=fitted.var() if data.ridge is None else data.ridge,
        method=method,
        value=value,
        parameters=parameters.by_name(data, values),
        n_evaluations=search.optimizer.evaluations,
        output_scale=search.output_scale,
    )


class _Search:
    """The searches of one call, and the notes for its warning.

    Outputs are divided by their scales: first by their sizes, then by what the likelihood finds.
    """

    def __init__(
        self, data: Data, kernel: Kernel | None, model: NoiseModel | str, n_restarts: int, generator: Any
    ) -> None:
        self.data, self.output_scale = data, np.ones(data.y.shape[1])
        self.own_scales = (
            data.y.shape[1] > 1 and (kernel is None or has_free_scale(kernel)) and _is_scale_family(model)
        )
        if self.own_scales:
            self._divide(
                relative_scales(data.average((data.y - data.average(data.y) * bool(data.trend)) ** 2))
            )
        self._sized = self.data
        self.kernel = default_kernel(self.data) if kernel is None else kernel
        self.optimizer = Optimizer(data.size, n_restarts, generator)
        self.notes: list[str] = []
        self.subsets = nested_subsets(data)
        self.shapes = True

    def _divide(self, scale: FloatArray) -> None:
        self.output_scale = self.output_scale * scale
        self.data = replace(self.data, y=self.data.y / scale)

    def _box(self, parameters: Parameters) -> SearchBox:
        return search_box(self._sized, parameters)

    def run(
        self, model: NoiseModel | str, method: str, shapes: bool = True
    ) -> tuple[Parameters, FloatArray, float]:
        if not np.ptp(self.data.y, axis=0).any():
            return self._without_variation(model, method)
        if isinstance(model, str):
            return self._residuals(method)
        parameters, self.shapes = Parameters(self.kernel, model), shapes
        values, value = self._likelihood(parameters)
        if shapes and len(model.shape_names) and self.data.noise_scale.ndim == 1:
            sides = shape_starts(self._box(parameters), parameters, values)
            if method == "loo":  # the search of all parameters starts from here
                some = self._score(parameters)(self.subsets[0])
                values = self.optimizer.best_of(some, [*itertools.chain(*sides)], self._box(parameters))
            else:
                values = self._shapes(parameters, sides)
                if parameters.noise_at(values).mean():
                    values, value = self._likelihood(parameters, values)  # the mean depends on the shapes
        if method == "loo":
            values, value = self._loo(parameters, values)
        return parameters, values, value

    def _without_variation(
        self, model: NoiseModel | str, method: str
    ) -> tuple[Parameters, FloatArray, float]:
        """The likelihood's parameters, and shapes in the middle of their range."""
        self.notes.append("the targets do not vary, so the noise cannot be estimated")
        parameters = Parameters(self.kernel, Family("norm") if isinstance(model, str) else model)
        values, value = self._likelihood(parameters)
        if method == "loo":
            value = LeaveOneOutScore(self.data, parameters).value(values)
        return parameters, values, value

    def _residuals(self, method: str) -> tuple[Parameters, FloatArray, float]:
        """Shape from the residuals of normal noise; then, for loo, from those under that shape, and so on."""
        parameters, values, value = self.run(Family("norm"), "likelihood")
        likelihood = values
        for _ in range(RESIDUAL_ROUNDS if method == "loo" else 1):
            shape = residual_shape(self.data, parameters, values)
            if shape is None:
                self.notes.append("all residuals are equal, so noise='residuals' is normal noise")
                return self.run(Family("norm"), method)
            parameters = Parameters(self.kernel, shape)
            if method == "loo":
                # The shape belongs to these values: a search that begins far from them would not see it.
                values, value = self._climb(parameters, [[values]], likelihood)
                if values is likelihood:
                    break
        return parameters, values, value

    def _likelihood(
        self, parameters: Parameters, start: FloatArray | None = None
    ) -> tuple[FloatArray, float]:
        box = self._box(parameters)
        starts = list(starting_points(box, parameters)) if start is None else [start]
        box = box.fixing(parameters.shapes, starts[0])

        def objective(rows: IntArray | None) -> Likelihood:
            return Likelihood(self._part(rows), parameters, self.own_scales)

        values, value = self._maximize(objective, [starts], starts, box)
        if self.own_scales:
            self._divide(objective(None).output_scale(values))
        return values, value

    def _shapes(self, parameters: Parameters, sides: list[list[FloatArray]]) -> FloatArray:
        """The shapes alone, by the leave-one-out score: one search from the best of a few laws of either skew."""
        box = self._box(parameters).fixing(slice(parameters.shapes.start), sides[0][0])
        score = self._score(parameters)
        results = [self._maximize(score, [side], [], box) for side in sides]
        return max(results, key=lambda result: result[1])[0]

    def _loo(self, parameters: Parameters, values: FloatArray) -> tuple[FloatArray, float]:
        """From the likelihood's maximum, and from the best of the points that the likelihood started with."""
        box = self._box(parameters)
        others = list(starting_points(box, parameters))
        for other in others:
            other[parameters.shapes] = values[parameters.shapes]
        return self._climb(parameters, [[values], others], values)

    def _climb(
        self, parameters: Parameters, starts: list[list[FloatArray]], likelihood: FloatArray
    ) -> tuple[FloatArray, float]:
        """Maximize the score over all parameters; a maximum at a bound from the data yields to the likelihood's values.

        There the score does not determine the parameter, prior or not, while the likelihood does.
        """
        box, score = self._box(parameters), self._score(parameters)
        values, value = self._maximize(score, starts, [likelihood], box)
        ended, known = (np.any(box.at_bound(point), axis=0) for point in (values, likelihood))
        runaway = ended & ~known & box.has_prior
        if runaway.any():
            names = ", ".join(np.array(self.data.by_column(parameters.names))[runaway])
            self.notes.append(
                f"the leave-one-out score increases up to the bound of {names}, so all values are the likelihood's"
            )
            values = self._shapes(parameters, [[likelihood]]) if parameters.noise.shape_names else likelihood
            return values, score(None).value(values)
        return values, value

    def _part(self, rows: IntArray | None) -> Data:
        return self.data if rows is None else self.data.subset(rows)

    def _score(self, parameters: Parameters) -> Callable[[IntArray | None], LeaveOneOutScore]:
        """The leave-one-out score on a subset of the rows."""

        def score(rows: IntArray | None) -> LeaveOneOutScore:
            model = parameters.noise
            if rows is not None and isinstance(model, ScaledShape):
                model = shape_of_subset(model, rows, self.data.y.shape)
            return LeaveOneOutScore(self._part(rows), Parameters(parameters.kernel, model))

        return score

    def _maximize(
        self,
        objective: Callable[[IntArray | None], Objective],
        starts: list[list[FloatArray]],
        others: list[FloatArray],
        box: SearchBox,
    ) -> tuple[FloatArray, float]:
        """Maximize on the smallest subset of the rows, from the best of each group of starts, and refine on larger ones.

        A larger subset may see what a smaller one cannot, such as short length scales: it starts from one of ``others``
        where that beats the maximum so far.
        """
        optimizer, coarse = self.optimizer, None
        for rows in self.subsets:
            current, last = objective(rows), rows is None
            try:
                if coarse is None:
                    begins = [optimizer.best_of(current, group, box) for group in starts]
                    values, value = optimizer.maximize(current, begins, box, rough=not last)
                    if last:
                        break
                    start, curvature = values, optimizer.curvature(current, values, box)
                else:
                    start = optimizer.best_of(current, [values, *others], box)
                    # that of the steps so far is too rough: on fewer rows it costs less than it saves
                    curvature = optimizer.curvature(coarse, start, box)
                values, value, curvature = optimizer.refine(current, start, box, curvature)
            except FAILURES:
                if last:
                    raise
                continue
            coarse = current
        return values, value

    def warn(self, parameters: Parameters, values: FloatArray) -> None:
        """Collect all notes in one warning."""
        from sklearn.exceptions import ConvergenceWarning

        box, n = self._box(parameters), self.data.size
        names = np.array(self.data.by_column(parameters.names))
        notes = list(self.notes)
        flat = box.low < box.high
        flat &= self.optimizer.steepest < FLAT if len(self.optimizer.steepest) else False
        flat[parameters.shapes] &= self.shapes
        if flat.any():
            notes.append(f"the data do not determine {', '.join(names[flat])}")
        ends = map(parameters.shown, (box.low, box.high))
        for side, end, near in zip(("lower", "upper"), ends, box.at_bound(values), strict=True):
            for k in np.flatnonzero(near & ~flat):
                notes.append(f"{names[k]} ended at its {side} bound {end[k]:.3g}")
        some = ", ".join(names[:MENTIONED]) + ", ..." * (len(names) > MENTIONED)
        if len(values) > n:
            notes.append(f"{n} samples do not determine {len(values)} parameters ({some})")
        if self.optimizer.message:
            notes.append(f"the search for {some} did not converge: {self.optimizer.message}")
        if message := variance_at_odds(self.data, self.kernel):
            notes.append(message)
        outside = outside_support(self.data, parameters, values)
        if outside:
            notes.append(
                f"{outside} of {n} residuals lie outside the support of noise {parameters.noise_at(values)!r}: "
                "try another family or location"
            )
        if notes:
            warnings.warn("tuning: " + "; ".join(notes), ConvergenceWarning, stacklevel=3)


def _is_scale_family(model: NoiseModel | str) -> bool:
    """Whether the noise has mean 0 and any standard deviation."""
    if isinstance(model, Family):
        return model.loc is None and (model.std_bounds is None or model.std_bounds[0] < model.std_bounds[1])
    return isinstance(model, str) or model.free_std
