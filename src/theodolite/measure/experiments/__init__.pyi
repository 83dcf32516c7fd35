from .descent import (
    descent_path as descent_path,
    largest_stable_step as largest_stable_step,
    noisy_descent as noisy_descent,
    named_activation as named_activation,
    two_layer_curvature as two_layer_curvature,
    two_layer_path as two_layer_path,
    two_layer_start as two_layer_start,
)
from .ensembles import (
    Ensemble as Ensemble,
    conditional_chain as conditional_chain,
    conditional_chains as conditional_chains,
    correlations as correlations,
    elementwise as elementwise,
    perturbation_growth as perturbation_growth,
    preactivations as preactivations,
    random_entries as random_entries,
    safe_cholesky as safe_cholesky,
)
from .flows import (
    enumerated_batches as enumerated_batches,
    flow_limit as flow_limit,
    flowed as flowed,
    log_loss_times_time as log_loss_times_time,
    separating_flow as separating_flow,
    stationary_vector as stationary_vector,
)
from .line_ensembles import LineEnsemble as LineEnsemble, line_counts as line_counts
from .linear_draws import (
    Draws as Draws,
    Problem as Problem,
    prior_draws as prior_draws,
    product_log_norms as product_log_norms,
    tilted_draws as tilted_draws,
)
from .network_learners import (
    gaussian_start as gaussian_start,
    network_outputs as network_outputs,
    trained_networks as trained_networks,
)
from .optimizer_edges import (
    frozen_adadelta as frozen_adadelta,
    frozen_adam as frozen_adam,
    frozen_rmsprop as frozen_rmsprop,
    full_adagrad as full_adagrad,
    largest_stable_gain as largest_stable_gain,
    late_sharpness as late_sharpness,
)
from .path_gradients import (
    conditional_gradients as conditional_gradients,
    drawn_gradients as drawn_gradients,
    path_sum as path_sum,
)
from .rotation_learners import (
    online_weights as online_weights,
    ridge_weights as ridge_weights,
    vaw_predictions as vaw_predictions,
)
from .sparse_learners import (
    descent_weights as descent_weights,
    least_squares_weights as least_squares_weights,
    multiplicative_weights as multiplicative_weights,
    outside_span as outside_span,
)
from .tangent_ensembles import (
    batch_kernels as batch_kernels,
    descended as descended,
    linearly_descended as linearly_descended,
    tangent_kernels as tangent_kernels,
)
from .first_steps import first_step as first_step, residual_step as residual_step, share_left as share_left
