from .initialization import Initialized as Initialized, initialize_ as initialize_
from .networks import Elementwise as Elementwise, network as network
from .seed_spread import gradient_spread as gradient_spread
