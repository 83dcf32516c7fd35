from .linear_networks import (
    LinearNet as LinearNet,
    best_log_evidence as best_log_evidence,
    best_variance as best_variance,
    effective_depth as effective_depth,
    limiting_best_variance as limiting_best_variance,
    log_evidence as log_evidence,
    log_norm_moments as log_norm_moments,
    log_scale_density as log_scale_density,
    perpendicular_moment as perpendicular_moment,
    posterior_ratio as posterior_ratio,
    scale_moment as scale_moment,
)
from .noisy_targets import (
    ScalePosterior as ScalePosterior,
    log_likelihood as log_likelihood,
    log_scale_prior as log_scale_prior,
    noisy_scale_posterior as noisy_scale_posterior,
)
