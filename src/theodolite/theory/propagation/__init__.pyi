from .critical_points import (
    Criticality as Criticality,
    Decay as Decay,
    critical_decay as critical_decay,
    criticality as criticality,
)
from .finite_width import (
    dead_network_probability as dead_network_probability,
    edgeworth_distance as edgeworth_distance,
    excess_kurtosis as excess_kurtosis,
    leaky_relu_second_moment as leaky_relu_second_moment,
    variance_biases as variance_biases,
    variance_vertices as variance_vertices,
)
from .layer_spread import (
    correlation_spread as correlation_spread,
    critical_band as critical_band,
    signal_spread as signal_spread,
)
from .relu_paths import (
    gradient_second_moment as gradient_second_moment,
    jacobian_fourth_moment as jacobian_fourth_moment,
    jacobian_second_moment as jacobian_second_moment,
    log_gradient_moments as log_gradient_moments,
    log_gradient_variance as log_gradient_variance,
    spread_factor as spread_factor,
    spread_words as spread_words,
    width_for_spread as width_for_spread,
)
from .signal_maps import (
    chi_parallel as chi_parallel,
    chi_perpendicular as chi_perpendicular,
    covariance_jacobian as covariance_jacobian,
    covariance_trajectory as covariance_trajectory,
    first_covariance as first_covariance,
    next_covariance as next_covariance,
    next_variance as next_variance,
    variance_trajectory as variance_trajectory,
)
from .signal_phases import (
    FixedPoint as FixedPoint,
    Phase as Phase,
    fixed_points as fixed_points,
    limiting_correlation as limiting_correlation,
    phase as phase,
)
