from .initialisation import Initialised as Initialised, initialise_ as initialise_
from .networks import Elementwise as Elementwise, network as network
from .seed_spread import gradient_spread as gradient_spread
