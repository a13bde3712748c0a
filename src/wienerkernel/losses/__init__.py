"""Beyond the linear estimate: other convex losses, expectation propagation, sampling."""

from .base import NonlinearPosterior
from .fit import check_setting, condition, is_linear

__all__ = ["NonlinearPosterior", "check_setting", "condition", "is_linear"]
