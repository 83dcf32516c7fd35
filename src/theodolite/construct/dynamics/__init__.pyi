from .small_problems import (
    OneHidden as OneHidden,
    diagonal_slope as diagonal_slope,
    frozen_gate_start as frozen_gate_start,
    interpolation as interpolation,
    quadratic_problem as quadratic_problem,
    quadratic_slope as quadratic_slope,
    separable as separable,
)
from .taylor_models import Quadratic as Quadratic, QuadraticRun as QuadraticRun, quadratic as quadratic
from .transfer_plans import (
    Multiplier as Multiplier,
    TransferredTensor as TransferredTensor,
    apply_multipliers_ as apply_multipliers_,
    forward_multipliers as forward_multipliers,
    layer_kinds as layer_kinds,
    transferred_tensors as transferred_tensors,
)
