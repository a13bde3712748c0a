"""Kernel regression under non-Gaussian noise: exact predictive laws, and the uncertainty split by its cause.

All public names can be imported from here. Names are loaded when they are first used, so that
``import wienerkernel`` is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .backend.linalg import NotPositiveDefiniteError as NotPositiveDefiniteError
    from .chaos import ChaosForm as ChaosForm
    from .chaos import Expansion as Expansion
    from .chaos import JointBasis as JointBasis
    from .chaos import OrthogonalBasis as OrthogonalBasis
    from .chaos import project as project
    from .chaos import two_term as two_term
    from .decisions.design import NextSample as NextSample
    from .decisions.design import SamplesNeeded as SamplesNeeded
    from .decisions.norms import NormWarning as NormWarning
    from .decisions.norms import rkhs_norm as rkhs_norm
    from .decisions.optimizer import Optimizer as Optimizer
    from .decisions.optimizer import SafetyConstraint as SafetyConstraint
    from .decisions.optimizer import minimize as minimize
    from .dynamics import Causes as Causes
    from .dynamics import Dynamics as Dynamics
    from .dynamics import Rollout as Rollout
    from .dynamics import StateDistribution as StateDistribution
    from .dynamics import Tube as Tube
    from .dynamics import seasonal_inputs as seasonal_inputs
    from .evaluation.crps import crps as crps
    from .evaluation.diagnostics import Comparison as Comparison
    from .evaluation.diagnostics import ScoreReport as ScoreReport
    from .evaluation.diagnostics import compare as compare
    from .evaluation.pipelines import IntervalRegressor as IntervalRegressor
    from .evaluation.pipelines import coverage as coverage
    from .evaluation.pipelines import log_score as log_score
    from .evaluation.pipelines import neg_crps as neg_crps
    from .evaluation.pipelines import prediction_table as prediction_table
    from .evaluation.plotting import ScoreDisplay as ScoreDisplay
    from .evaluation.plotting import TubeDisplay as TubeDisplay
    from .io.store import FormatError as FormatError
    from .io.store import load as load
    from .kernels import RBF as RBF
    from .kernels import Constant as Constant
    from .kernels import Exponential as Exponential
    from .kernels import FeatureMap as FeatureMap
    from .kernels import Kernel as Kernel
    from .kernels import Linear as Linear
    from .kernels import Matern as Matern
    from .kernels import Periodic as Periodic
    from .kernels import Polynomial as Polynomial
    from .kernels import RationalQuadratic as RationalQuadratic
    from .law import AccuracyWarning as AccuracyWarning
    from .law import LinearCombination as LinearCombination
    from .losses import EpsilonInsensitive as EpsilonInsensitive
    from .losses import Huber as Huber
    from .losses import NegativeLogDensity as NegativeLogDensity
    from .losses import Pinball as Pinball
    from .noise import Mixture as Mixture
    from .noise import Noise as Noise
    from .noise import Residuals as Residuals
    from .noise import SmoothedResiduals as SmoothedResiduals
    from .noise import as_noise as as_noise
    from .noise.family import Family as Family
    from .posterior import LeaveOneOut as LeaveOneOut
    from .posterior import PredictionGradient as PredictionGradient
    from .posterior import PredictiveDistribution as PredictiveDistribution
    from .posterior import RandomInput as RandomInput
    from .posterior import SamplePaths as SamplePaths
    from .posterior import Uncertainty as Uncertainty
    from .regressor import WienerKernelRegressor as WienerKernelRegressor
    from .scale import Actions as Actions
    from .scale import Features as Features
    from .scale import Neighbors as Neighbors
    from .smoother.fast_predictor import FastPredictor as FastPredictor
    from .smoother.ridge_path import RidgePath as RidgePath
    from .streams import Files as Files
    from .tuning import TuningResult as TuningResult

__version__ = "0.1.0"

_HOME = {
    "backend.linalg": ["NotPositiveDefiniteError"],
    "chaos": ["ChaosForm", "Expansion", "JointBasis", "OrthogonalBasis", "project", "two_term"],
    "decisions.design": ["NextSample", "SamplesNeeded"],
    "decisions.norms": ["NormWarning", "rkhs_norm"],
    "decisions.optimizer": ["Optimizer", "SafetyConstraint", "minimize"],
    "dynamics": ["Causes", "Dynamics", "Rollout", "StateDistribution", "Tube", "seasonal_inputs"],
    "evaluation.crps": ["crps"],
    "evaluation.diagnostics": ["Comparison", "ScoreReport", "compare"],
    "evaluation.pipelines": ["IntervalRegressor", "coverage", "log_score", "neg_crps", "prediction_table"],
    "evaluation.plotting": ["ScoreDisplay", "TubeDisplay"],
    "io.store": ["FormatError", "load"],
    "kernels": [
        "RBF",
        "Constant",
        "Exponential",
        "FeatureMap",
        "Kernel",
        "Linear",
        "Matern",
        "Periodic",
        "Polynomial",
        "RationalQuadratic",
    ],
    "law": ["AccuracyWarning", "LinearCombination"],
    "losses": ["EpsilonInsensitive", "Huber", "NegativeLogDensity", "Pinball"],
    "noise": ["Mixture", "Noise", "Residuals", "SmoothedResiduals", "as_noise"],
    "noise.family": ["Family"],
    "posterior": [
        "LeaveOneOut",
        "PredictionGradient",
        "PredictiveDistribution",
        "RandomInput",
        "SamplePaths",
        "Uncertainty",
    ],
    "regressor": ["WienerKernelRegressor"],
    "scale": ["Actions", "Features", "Neighbors"],
    "smoother.fast_predictor": ["FastPredictor"],
    "smoother.ridge_path": ["RidgePath"],
    "streams": ["Files"],
    "tuning": ["TuningResult"],
}
_ROOM = {name: room for room, names in _HOME.items() for name in names}

__all__ = sorted(_ROOM)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _ROOM:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f".{_ROOM[name]}", __name__), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
