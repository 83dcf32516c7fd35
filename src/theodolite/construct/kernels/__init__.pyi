from .estimators import (
    NetworkKernelClassifier as NetworkKernelClassifier,
    NetworkKernelRegressor as NetworkKernelRegressor,
)
from .module_kernels import kernel_of as kernel_of
