from .class_means import (
    ClassMoments as ClassMoments,
    Collapse as Collapse,
    collapse_metrics as collapse_metrics,
    collapse_of as collapse_of,
    disagreements as disagreements,
    layer_collapse as layer_collapse,
)
from .confusion import confusion_counts as confusion_counts, matthews_coefficient as matthews_coefficient
