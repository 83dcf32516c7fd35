import torch

from theodolite.measure.dimension import prepared_rows


def test_rows_that_were_float32_are_told_apart_by_their_hash_alone(monkeypatch):
    whole = torch.unique

    def unique(table, **options):
        assert "dim" not in options  # the slow way, for rows that share a hash
        return whole(table, **options)

    monkeypatch.setattr(torch, "unique", unique)
    table = torch.randn(600_000, 2, generator=torch.Generator().manual_seed(0))
    rows = prepared_rows.distinct_rows(torch.cat([table, table[:1]]))
    assert (len(rows), rows.duplicates) == (600_000, 1)
