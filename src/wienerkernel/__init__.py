"""Kernel regression under non-Gaussian noise: exact predictive laws, and the uncertainty split by its cause.

Everything a user types is importable from here. Names are loaded when they are first used, so that
``import wienerkernel`` is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .bounds import NormWarning as NormWarning
    from .bounds import rkhs_norm as rkhs_norm
    from .chaos import ChaosForm as ChaosForm
    from .chaos import Expansion as Expansion
    from .chaos import JointBasis as JointBasis
    from .chaos import OrthogonalBasis as OrthogonalBasis
    from .chaos import project as project
    from .chaos import two_term as two_term
    from .design import NextSample as NextSample
    from .design import SamplesNeeded as SamplesNeeded
    from .diagnostics import Comparison as Comparison
    from .diagnostics import ScoreReport as ScoreReport
    from .diagnostics import compare as compare
    from .diagnostics import crps as crps
    from .distribution import PredictiveDistribution as PredictiveDistribution
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
    from .lean import LeanPredictor as LeanPredictor
    from .linalg import NotPositiveDefiniteError as NotPositiveDefiniteError
    from .noise import Mixture as Mixture
    from .noise import Noise as Noise
    from .noise import Residuals as Residuals
    from .noise import SmoothedResiduals as SmoothedResiduals
    from .noise import as_noise as as_noise
    from .noise.family import Family as Family
    from .optimize import Optimizer as Optimizer
    from .optimize import SafetyConstraint as SafetyConstraint
    from .optimize import minimize as minimize
    from .plotting import ScoreDisplay as ScoreDisplay
    from .plotting import TubeDisplay as TubeDisplay
    from .prediction import LeaveOneOut as LeaveOneOut
    from .prediction import PredictionGradient as PredictionGradient
    from .prediction import Uncertainty as Uncertainty
    from .regressor import WienerKernelRegressor as WienerKernelRegressor
    from .ridge_path import RidgePath as RidgePath
    from .store import FormatError as FormatError
    from .store import load as load
    from .tuning import Tuned as Tuned

__version__ = "0.1.0"

_HOME = {
    "bounds": ["NormWarning", "rkhs_norm"],
    "chaos": ["ChaosForm", "Expansion", "JointBasis", "OrthogonalBasis", "project", "two_term"],
    "design": ["NextSample", "SamplesNeeded"],
    "diagnostics": ["Comparison", "ScoreReport", "compare", "crps"],
    "distribution": ["PredictiveDistribution"],
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
    "lean": ["LeanPredictor"],
    "linalg": ["NotPositiveDefiniteError"],
    "noise": ["Mixture", "Noise", "Residuals", "SmoothedResiduals", "as_noise"],
    "noise.family": ["Family"],
    "optimize": ["Optimizer", "SafetyConstraint", "minimize"],
    "plotting": ["ScoreDisplay", "TubeDisplay"],
    "prediction": ["LeaveOneOut", "PredictionGradient", "Uncertainty"],
    "ridge_path": ["RidgePath"],
    "regressor": ["WienerKernelRegressor"],
    "store": ["FormatError", "load"],
    "tuning": ["Tuned"],
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
