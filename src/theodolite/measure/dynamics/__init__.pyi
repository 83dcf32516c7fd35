from .branches_and_queries import (
    BranchPlace as BranchPlace,
    QueryPlace as QueryPlace,
    StreamSum as StreamSum,
    forward_places as forward_places,
    residual_sums as residual_sums,
)
from .gradient_noise import (
    GradientMoments as GradientMoments,
    gradient_moments as gradient_moments,
    group_moments as group_moments,
)
from .last_update import UpdateEffect as UpdateEffect, update_effect as update_effect
from .micro_batches import (
    AccumulatedNoise as AccumulatedNoise,
    accumulated_noise as accumulated_noise,
    noise_of_ranks as noise_of_ranks,
)
from .sgd_balance import (
    Sgd as Sgd,
    SgdRun as SgdRun,
    block_ratio as block_ratio,
    block_trend as block_trend,
    sgd_run as sgd_run,
)
from .probe_measurements import (
    Slope as Slope,
    at_state as at_state,
    probe_slope as probe_slope,
    subspace_share as subspace_share,
    telling_kernel as telling_kernel,
    thinned_travel as thinned_travel,
    thinned_weights as thinned_weights,
    trainable_vector as trainable_vector,
    weight_travel as weight_travel,
)
from .training_copies import copied_training as copied_training
from .update_rules import (
    UpdateRule as UpdateRule,
    bare_optimizer as bare_optimizer,
    gain_roots as gain_roots,
    parameters_left_out as parameters_left_out,
    preconditioned as preconditioned,
    update_rule as update_rule,
)
from .coordinate_changes import (
    LayerMove as LayerMove,
    layer_moves as layer_moves,
    scaling_exponents as scaling_exponents,
    width_exponent as width_exponent,
)
