from .covering import (
    Cover as Cover,
    LinearEmbedding as LinearEmbedding,
    distances as distances,
    embedding as embedding,
    gaussian_map as gaussian_map,
    greedy_cover as greedy_cover,
    lipschitz_code as lipschitz_code,
    pair_distances as pair_distances,
    zigzags as zigzags,
)
