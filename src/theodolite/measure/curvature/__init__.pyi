from .classes import (
    Parts as Parts,
    activation_structure as activation_structure,
    batch_of as batch_of,
    class_structure as class_structure,
    label_errors as label_errors,
    label_gradients as label_gradients,
    outlier_gap as outlier_gap,
    pair_gradients as pair_gradients,
    pair_structure as pair_structure,
)
from .densities import SpectralDensity as SpectralDensity, spectral_density as spectral_density
from .differences import (
    ByDifferences as ByDifferences,
    hessian_by_differences as hessian_by_differences,
    sharpness_by_differences as sharpness_by_differences,
)
from .hessians import (
    OnceDifferentiableError as OnceDifferentiableError,
    empirical_fisher as empirical_fisher,
    fisher as fisher,
    gauss_newton as gauss_newton,
    hessian as hessian,
    hessian_again as hessian_again,
    top_hessian_eigenvalues as top_hessian_eigenvalues,
)
from .lanczos import Eigenpairs as Eigenpairs, Symmetric as Symmetric, extreme_eigenpairs as extreme_eigenpairs
from .operators import (
    Operator as Operator,
    Point as Point,
    derivative as derivative,
    operator_of as operator_of,
    point_of as point_of,
)
from .edge_side import largest_beside as largest_beside
from .traces import (
    Diagonal as Diagonal,
    Squared as Squared,
    diagonal as diagonal,
    frobenius_norm as frobenius_norm,
    trace as trace,
)
