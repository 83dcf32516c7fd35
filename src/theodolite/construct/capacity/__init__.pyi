from .corrective_groups import (
    UnitGroup as UnitGroup,
    least_squares as least_squares,
    least_squares_group as least_squares_group,
    line_search as line_search,
    literal_group as literal_group,
)
from .corrective_networks import (
    CorrectiveNetwork as CorrectiveNetwork,
    CorrectiveReport as CorrectiveReport,
    corrective as corrective,
)
from .lipschitz_maps import lipschitz_extension as lipschitz_extension
from .memorizing import (
    Memorized as Memorized,
    Report as Report,
    fit_error as fit_error,
    in_float32 as in_float32,
    load as load,
    memorize as memorize,
    save as save,
)
from .random_features import CorrectiveFeatures as CorrectiveFeatures
from .ridge_networks import (
    RidgeNetwork as RidgeNetwork,
    Units as Units,
    profile_units as profile_units,
    representation as representation,
)
from .separated_points import separated_pairs as separated_pairs
from .smooth_layers import SReLU as SReLU
