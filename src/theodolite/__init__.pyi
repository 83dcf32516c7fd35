from . import (
    bayes as bayes,
    construct as construct,
    measure as measure,
    nn as nn,
    optim as optim,
    testing as testing,
    theory as theory,
)
from .construct.capacity.corrective_networks import CorrectiveNetwork as CorrectiveNetwork, corrective as corrective
from .construct.capacity.memorizing import memorize as memorize
from .construct.capacity.random_features import CorrectiveFeatures as CorrectiveFeatures
from .construct.capacity.smooth_layers import SReLU as SReLU
from .construct.dimension.subspaces import Subspace as Subspace, subspace as subspace
from .construct.dynamics.taylor_models import quadratic as quadratic
from .construct.kernels.estimators import (
    NetworkKernelClassifier as NetworkKernelClassifier,
    NetworkKernelRegressor as NetworkKernelRegressor,
)
from .construct.kernels.module_kernels import kernel_of as kernel_of
from .construct.propagation.initialization import initialize_ as initialize_
from .core.ailment import Ailment as Ailment, Finding as Finding
from .core.instrument import Instrument as Instrument
from .core.law import Law as Law, Verdict as Verdict
from .core.reading import Band as Band, Estimate as Estimate, Reading as Reading
from .core.series import Series as Series
from .core.subject import Subject as Subject
from .integrations.notebook import load_ipython_extension as load_ipython_extension
from .measure.dimension.objectives import (
    ObjectiveDimension as ObjectiveDimension,
    objective_dimension as objective_dimension,
)
from .theory.activations import Activation as Activation
from .theory.propagation.critical_points import Criticality as Criticality, criticality as criticality
from .theory.specification import Mlp as Mlp
from .verbs.checking import check as check
from .verbs.comparing_features import FeatureSimilarity as FeatureSimilarity, similarity as similarity
from .verbs.designing.advice import Design as Design, design as design
from .verbs.diagnosis import Diagnosis as Diagnosis, diagnose as diagnose
from .verbs.dimensions.panel import Dimension as Dimension, dimension as dimension
from .verbs.doctoring import Health as Health, doctor as doctor
from .verbs.invariance import RotationInvariance as RotationInvariance, rotation_invariance as rotation_invariance
from .verbs.summarizing import Summary as Summary, summary as summary
from .verbs.step_sizes import StepSizes as StepSizes, find_lr as find_lr
from .verbs.surveying import read as read, survey as survey
from .verbs.surveys import Survey as Survey
from .verbs.transferring import (
    Transfer as Transfer,
    WidthScaling as WidthScaling,
    transfer as transfer,
    width_scaling as width_scaling,
)
from .verbs.watching.alarms import Stopped as Stopped
from .verbs.watching.watch import Watch as Watch

__version__: str
