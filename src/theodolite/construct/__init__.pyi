from . import bias as bias
from . import capacity as capacity
from . import dimension as dimension
from . import dynamics as dynamics
from . import kernels as kernels
from . import propagation as propagation
from . import regions as regions
