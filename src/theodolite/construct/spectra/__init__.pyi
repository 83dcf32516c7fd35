from .null_simulation import (
    cell as cell,
    draws_of as draws_of,
    gaussian_spectrum as gaussian_spectrum,
    noise_statistics as noise_statistics,
    null_table as null_table,
)
