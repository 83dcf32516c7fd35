from .concentration import (
    chebyshev_tail as chebyshev_tail,
    matrix_bernstein_tail as matrix_bernstein_tail,
    matrix_chernoff_tail as matrix_chernoff_tail,
)
from .convolutions import ImageKernel as ImageKernel
from .finite_width import (
    independent_gates_cosine as independent_gates_cosine,
    one_hidden_layer_spread as one_hidden_layer_spread,
    relu_ntk_cosine as relu_ntk_cosine,
    relu_ntk_mean as relu_ntk_mean,
    relu_ntk_second_moment as relu_ntk_second_moment,
)
from .image_layers import Attention as Attention, Average as Average, Convolution as Convolution, Flatten as Flatten
from .inference import (
    Factor as Factor,
    Posterior as Posterior,
    Ridge as Ridge,
    cholesky_factor as cholesky_factor,
    gp_posterior as gp_posterior,
    kernel_ridge as kernel_ridge,
    leave_one_out_residuals as leave_one_out_residuals,
    log_marginal_likelihood as log_marginal_likelihood,
    one_hot_targets as one_hot_targets,
    rkhs_norm as rkhs_norm,
    trained_prediction as trained_prediction,
)
from .layer_shares import Share as Share, tangent_pair as tangent_pair, tangent_shares as tangent_shares
from .matrix_free import Kernel as Kernel, KernelMatrix as KernelMatrix
from .mercer import (
    brownian_eigenvalue as brownian_eigenvalue,
    dpp_sample as dpp_sample,
    gaussian_eigenvalue as gaussian_eigenvalue,
    mercer_eigenvalues as mercer_eigenvalues,
)
from .solvers import (
    Matrix as Matrix,
    Solution as Solution,
    conjugate_gradients as conjugate_gradients,
    low_rank_preconditioner as low_rank_preconditioner,
    pivoted_cholesky as pivoted_cholesky,
    ridge_by_conjugate_gradients as ridge_by_conjugate_gradients,
)
from .sphere import (
    hermite_coefficients as hermite_coefficients,
    smallest_eigenvalue_bounds as smallest_eigenvalue_bounds,
    sphere_gram as sphere_gram,
    sphere_gram_rank as sphere_gram_rank,
)
from .step_sizes import (
    KernelLearning as KernelLearning,
    LayerRate as LayerRate,
    LearningRates as LearningRates,
    depth_exponents as depth_exponents,
    kernel_learning as kernel_learning,
    learning_rates as learning_rates,
)
from .wide_networks import mlp_kernels as mlp_kernels
from .wide_training import (
    certified_width as certified_width,
    decay_factor as decay_factor,
    kernel_change_bound as kernel_change_bound,
    weight_movement_bound as weight_movement_bound,
)
from ._tiled_pairs import Kernels as Kernels
