"""Laws: run a theorem, see it hold, break its assumption, see it fail; write one of your own."""

import torch

import theodolite as th

verdict = th.check("relu-critical")
print("holds:", verdict.holds)
for reading in verdict.readings:
    print(f"  {reading.where}: measured {reading.measured:.5g}, expected {reading.expected} -> {reading.status}")
for assumption, change in verdict.law.assumes.items():
    if change:
        print(f"without '{assumption}' it is broken:", th.check("relu-critical", breaking=assumption).broken)

mine = th.Law(
    claim="The largest of n standard normal numbers grows like the square root of 2 log n, a little below it.",
    formula=r"\max_i z_i \leq \sqrt{2\log n}",
    assumes={"Gaussian tails": {"degrees": 3}},
    source="folklore",
    predict=lambda n: th.Band(high=(2 * torch.tensor(float(n)).log()).sqrt().item()),
    measure=lambda n, *, generator, degrees=None: (
        (
            torch.randn(n, generator=generator)
            if degrees is None
            else torch.randn(n, generator=generator)
            / torch.randn(n, degrees, generator=generator).square().mean(1).sqrt()
        )
        .max()
        .item()
    ),
    cases=({"n": 1_000}, {"n": 100_000}),
    repeats=50,
)
print("mine holds:", mine.check().holds, "- and breaks:", mine.check(breaking="Gaussian tails").broken)
