from .by_angles import dimension_danco as dimension_danco, dimension_ess as dimension_ess
from .by_distances import (
    TwoNN as TwoNN,
    dimension_correlation as dimension_correlation,
    dimension_gride as dimension_gride,
    dimension_mle as dimension_mle,
    dimension_twonn as dimension_twonn,
    gride_curve as gride_curve,
    log_ratios as log_ratios,
    shared_error as shared_error,
    twonn_fit as twonn_fit,
)
from .by_variance import (
    LocalPca as LocalPca,
    Mixture as Mixture,
    dimension_local_pca as dimension_local_pca,
    dimension_parallel as dimension_parallel,
    dimension_participation as dimension_participation,
    dimension_pca as dimension_pca,
    directions_needed as directions_needed,
    gaussian_mixture as gaussian_mixture,
    linear_rank as linear_rank,
    local_pca as local_pca,
    rank_of as rank_of,
    variances as variances,
)
from .calibrated import dimension_calibrated as dimension_calibrated
from .prepared_rows import Rows as Rows, distinct_rows as distinct_rows
from .embedding_scores import (
    Quality as Quality,
    embedding_quality as embedding_quality,
    planar_embeddings as planar_embeddings,
)
from .embeddings import (
    Embedding as Embedding,
    classical_mds as classical_mds,
    dimension_hessian as dimension_hessian,
    geodesic_distances as geodesic_distances,
    hessian_eigenmaps as hessian_eigenmaps,
    isomap as isomap,
    laplacian_eigenmaps as laplacian_eigenmaps,
    lle as lle,
    lle_weights as lle_weights,
    spectral_embedding as spectral_embedding,
)
from .near_duplicates import NearCopies as NearCopies, gride_misfit as gride_misfit, near_copies as near_copies
from .neighbor_graph import Neighbors as Neighbors, nearest_neighbors as nearest_neighbors, neighbors_of as neighbors_of
from .objectives import ObjectiveDimension as ObjectiveDimension, objective_dimension as objective_dimension
from .tsne_maps import (
    tsne as tsne,
    tsne_affinities as tsne_affinities,
    tsne_gradient as tsne_gradient,
    tsne_loss as tsne_loss,
)
