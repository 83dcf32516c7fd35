from .noise import (
    bbp_threshold as bbp_threshold,
    density_exponent as density_exponent,
    marchenko_pastur_cdf as marchenko_pastur_cdf,
    marchenko_pastur_density as marchenko_pastur_density,
    marchenko_pastur_edges as marchenko_pastur_edges,
    marchenko_pastur_moment as marchenko_pastur_moment,
    marchenko_pastur_quantile as marchenko_pastur_quantile,
    noise_edge as noise_edge,
    power_law_condition_number as power_law_condition_number,
    rank_exponent as rank_exponent,
    spike_location as spike_location,
    tracy_widom_cdf as tracy_widom_cdf,
    tracy_widom_quantile as tracy_widom_quantile,
)
from .nulls import (
    Structure as Structure,
    null_alpha as null_alpha,
    null_alpha_quantiles as null_alpha_quantiles,
    null_quantiles as null_quantiles,
    structure as structure,
)
from .products import (
    condition_number_bound as condition_number_bound,
    endpoint_exponent as endpoint_exponent,
    feature_exponent_bound as feature_exponent_bound,
    horn_bounds as horn_bounds,
    majorization_slack as majorization_slack,
    product_bound_applies as product_bound_applies,
    random_direction_gain as random_direction_gain,
    steering_gain_bounds as steering_gain_bounds,
    two_layer_exponent_bound as two_layer_exponent_bound,
)
from .ranks import (
    noise_effective_rank as noise_effective_rank,
    noise_stable_rank as noise_stable_rank,
    noise_stable_rank_band as noise_stable_rank_band,
    random_product_rank_band as random_product_rank_band,
)
from .entry_nulls import (
    gap_probability as gap_probability,
    gaussian_maximum as gaussian_maximum,
    initial_bounds as initial_bounds,
    kolmogorov_distance as kolmogorov_distance,
    largest_uniform_shortfall as largest_uniform_shortfall,
)
