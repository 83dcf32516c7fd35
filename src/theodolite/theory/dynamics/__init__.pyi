from .batch_noise import (
    Stationary as Stationary,
    batch_covariance as batch_covariance,
    batch_shares as batch_shares,
    circle_mass as circle_mass,
    entropic_drift as entropic_drift,
    quadratic_covariance as quadratic_covariance,
    stationary_regression as stationary_regression,
    valley_fluctuation as valley_fluctuation,
)
from .descent import (
    Catapult as Catapult,
    catapult_path as catapult_path,
    decaying_steps as decaying_steps,
    mean_square_path as mean_square_path,
    noise_floor as noise_floor,
    quadratic_rate as quadratic_rate,
    step_size_edge as step_size_edge,
)
from .edges import (
    StepQuality as StepQuality,
    sign_floor as sign_floor,
    step_quality as step_quality,
    update_edge as update_edge,
)
from .one_datum import (
    OneDatum as OneDatum,
    catapult_invariants as catapult_invariants,
    catapult_with_target as catapult_with_target,
    peak_time as peak_time,
)
from .phases import (
    Moment as Moment,
    TrainingPhase as TrainingPhase,
    is_launch as is_launch,
    run_outcome as run_outcome,
    training_phase as training_phase,
)
from .quadratic_models import (
    QuadraticProblem as QuadraticProblem,
    feature_drift as feature_drift,
    label_deformation as label_deformation,
    linear_flow_limit as linear_flow_limit,
    minimizer_correction as minimizer_correction,
    parallel_correction as parallel_correction,
    perpendicular_correction as perpendicular_correction,
)
from .scaling_rules import (
    LayerScaling as LayerScaling,
    attention_factor as attention_factor,
    branch_factor as branch_factor,
    branch_step_factor as branch_step_factor,
    initial_factor as initial_factor,
    layer_scaling as layer_scaling,
    step_factor as step_factor,
    tensor_kind as tensor_kind,
)
from .stationarity import batch_scatter as batch_scatter, dissipation as dissipation
