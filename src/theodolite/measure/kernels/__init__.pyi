from .expansions import (
    NtkProduct as NtkProduct,
    linearize as linearize,
    taylor_expand as taylor_expand,
    taylor_sum as taylor_sum,
    top_ntk_eigenvalue as top_ntk_eigenvalue,
)
from .projected import projected_jacobians as projected_jacobians
from .tangent_kernel import (
    KernelSpectrum as KernelSpectrum,
    NtkPlan as NtkPlan,
    curvature_through_kernel as curvature_through_kernel,
    empirical_ntk as empirical_ntk,
    fan_in_rates as fan_in_rates,
    kernel_alignment as kernel_alignment,
    kernel_drift as kernel_drift,
    kernel_matrix as kernel_matrix,
    kernel_spectrum as kernel_spectrum,
    ntk_plan as ntk_plan,
    sketched_ntk as sketched_ntk,
    output_curvatures as output_curvatures,
    target_rows as target_rows,
)
