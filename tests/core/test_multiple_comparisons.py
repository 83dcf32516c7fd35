"""Many readings at once: noise is left alone."""

import torch

from theodolite.core.multiple_comparisons import in_families
from theodolite.core.reading import Band, Reading


def test_a_family_of_noise_is_left_alone_at_98_percent():
    generator = torch.Generator().manual_seed(0)
    families, size = 400, 200

    def called(shift):
        found = 0
        for _ in range(families):
            values = torch.randn(size, generator=generator, dtype=torch.float64)
            values[0] += shift
            family = in_families(
                Reading(quantity="q", where=str(n), measured=v, expected=Band(-3.0, 3.0), against="chance")
                for n, v in enumerate(values.tolist())
            )
            found += any(reading.status == "not random" for reading in family)
        return found / families

    assert called(0.0) <= 0.02 + 3 * (0.02 * 0.98 / families) ** 0.5
    assert called(8.0) == 1.0
