from .null_simulation import (
    cell as cell,
    gaussian_spectrum as gaussian_spectrum,
    noise_statistics as noise_statistics,
    null_table as null_table,
)
