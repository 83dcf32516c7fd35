from . import bayes as bayes
from . import bias as bias
from . import capacity as capacity
from . import collapse as collapse
from . import curvature as curvature
from . import dimension as dimension
from . import dynamics as dynamics
from . import kernels as kernels
from . import nonlinearities as nonlinearities
from . import propagation as propagation
from . import regions as regions
from . import spectra as spectra
from .activations import Activation as Activation
from .specification import Mlp as Mlp, activation_of as activation_of
