from .class_means import (
    ClassMoments as ClassMoments,
    Collapse as Collapse,
    collapse_metrics as collapse_metrics,
    collapse_of as collapse_of,
    disagreements as disagreements,
    layer_collapse as layer_collapse,
)
