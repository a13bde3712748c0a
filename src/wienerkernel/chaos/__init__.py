"""Polynomial chaos: orthogonal bases of any law, expansions and their algebra, the chaos form of predictions."""

from .expansion import Expansion, project, two_term
from .form import ChaosForm, JointBasis, lift
from .polynomials import OrthogonalBasis, recurrence

__all__ = [
    "ChaosForm",
    "Expansion",
    "JointBasis",
    "OrthogonalBasis",
    "lift",
    "project",
    "recurrence",
    "two_term",
]
