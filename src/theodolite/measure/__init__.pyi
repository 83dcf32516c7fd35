from . import bias as bias
from . import capacity as capacity
from . import collapse as collapse
from . import curvature as curvature
from . import dimension as dimension
from . import dynamics as dynamics
from . import experiments as experiments
from . import kernels as kernels
from . import propagation as propagation
from . import regions as regions
from . import spectra as spectra
from .functional import (
    Stateless as Stateless,
    as_batch_of_one as as_batch_of_one,
    batch_statistics as batch_statistics,
    called_with as called_with,
    count as count,
    first_tensor as first_tensor,
    held as held,
    normalizes_batches as normalizes_batches,
    placed as placed,
    plain_attention as plain_attention,
    promoted as promoted,
    rows as rows,
    stateless as stateless,
)
