from .manifolds import manifold as manifold, rolled as rolled, rotated as rotated, unrolled_length as unrolled_length
from .projections import (
    DenseProjection as DenseProjection,
    Fastfood as Fastfood,
    LinearMap as LinearMap,
    Sparse as Sparse,
    Tied as Tied,
    fastfood_image as fastfood_image,
    mapped as mapped,
)
from .subspaces import Subspace as Subspace, subspace as subspace
