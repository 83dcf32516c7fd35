from .hadamard_data import (
    SparseProblem as SparseProblem,
    bit_patterns as bit_patterns,
    products_of_bits as products_of_bits,
    sparse_problem as sparse_problem,
    sparse_problems as sparse_problems,
)
