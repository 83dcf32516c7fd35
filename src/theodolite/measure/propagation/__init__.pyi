from .attention_maps import (
    ONE_PLACE as ONE_PLACE,
    AttentionSight as AttentionSight,
    attention_sights as attention_sights,
)
from .input_sizes import InputScales as InputScales, input_scales as input_scales
from .layer_features import (
    feature_covariances as feature_covariances,
    layer_inputs as layer_inputs,
    matrix_layers as matrix_layers,
    path_gains as path_gains,
    steering_changes as steering_changes,
    steering_gains as steering_gains,
)
from .one_pass import LayerSigns as LayerSigns, VitalSigns as VitalSigns, vital_signs as vital_signs
from .recurrent_gates import recurrent_saturation as recurrent_saturation
from .redraws import GradientDraws as GradientDraws, log_spread as log_spread, redrawn_gradients as redrawn_gradients
from .signal_flow import (
    Signal as Signal,
    SignalStep as SignalStep,
    Trace as Trace,
    is_matrix_layer as is_matrix_layer,
    signals as signals,
)
from .weight_spread import fan_in as fan_in, mean_square as mean_square, sums_inputs as sums_inputs
