"""What decisions hang on: one number for one meaning, each with its reason. An ailment keeps those that nobody else needs."""

SURE = 3.0
"""Standard errors by which two numbers must differ: chance does so once in 700, once in 200 with 16 parts (Student's t)."""

NOTHING = 0.02
"""A skill of which nobody would say that something was learned; a change, beside the whole, that is none."""

RARELY = 0.05
"""One in twenty: a share that single samples make; what is left of a quantity that is gone."""

WORTH = 0.1
"""The share of attainable skill whose loss is worth an alarm: a run that keeps nine tenths of it has lost nothing that people
would change a script for, and less is what another seed gives."""

PART = 0.2
"""A share that shows beside the whole: two tenths are more than another seed gives."""

MISSED = 0.3
"""The share of the attainable fall of the loss that must be missing for an alarm where more steps would do: where a loss falls as
the root of the steps, half as many more take off less than a fifth of what is left."""

CRITICAL = 0.5
"""Half of what could be learned is lost; more of a thing is one way than the other."""

MOST = 0.7
"""A cause recovers at least this share of what the best arm recovers; so much of a thing is most of it, beyond doubt."""

WELL = 1 - WORTH
"""A run that has gone so much of the way to a perfect answer can have lost little: nothing is tried."""

NEARLY_ALL = 1 - NOTHING
"""All but what is nothing."""

WORST = 3.0
"""Losses beyond so many times that of ignoring the input are as bad as those: how far a lost run is lost says nothing."""

THOUSANDFOLD = 1e3
"""Three orders of magnitude: a number so far off is no longer on the scale of the other."""

ROUNDING = 1e-4
"""A share of the size of answers that a pass in float32 may leave of a difference that is zero: 1,700 units in the last place."""

SAME = 1e-5
"""A relative difference of two float32 losses that is rounding: 170 units in the last place."""

STILL = 1e-6
"""A relative distance of weights that is rounding: 17 units in the last place of float32."""

FEWEST = 32
"""Samples, or places that count, of which a share is told to within a tenth (one standard error); of fewer nothing is."""

A_FEW = 4
"""The least of which there are some, and others: a half of two."""

PARTS = 16
"""So many parts, that the error of their mean can be told to a fifth; of a sequence so many places are many."""

ROWS, SAMPLES, MANY = 64, 256, 2048
"""Samples for an exact check, for a share to within three hundredths, and for a mean of anything that is read here."""

A_RUN, LATE = 50, 100
"""Steps from which on a run is a run, one of fewer may need nothing but more; and after which it should know at least how often
each answer occurs."""

SHORT, LONG = 300, 1000
"""Steps of the longest trial of a run that was not made yet, and of any, and of a run of which
nobody said how long it is."""

AT_ONCE = 1 << 22
"""Numbers that are held several times over at most, where fewer will do: 16 MB in float32."""

SEARCH = 80
"""Steps of a search for the least of a loss in its outputs; a quadratic of two numbers takes three."""

LADDER = (10.0, 100.0, 1e3, 1e4)
"""Factors by which a setting is made larger or smaller in turn, while it helps: people are off by powers of ten."""

DEPTH = 6
"""Layers from which on depth itself can be at fault: of fewer a factor of two a layer does no harm."""
