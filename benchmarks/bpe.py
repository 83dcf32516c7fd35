"""Byte pairs: the most frequent pair of neighboring tokens becomes a token of its own, again and again.

A text is an array of bytes; a vocabulary is the list of pairs in the order in which they were joined: token 256 + i is pair i.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Pair = tuple[int, int]


def joined(tokens: np.ndarray, pair: Pair, token: int) -> np.ndarray:
    """The tokens with each such pair, from the left and without overlap, replaced by one."""
    at = np.flatnonzero((tokens[:-1] == pair[0]) & (tokens[1:] == pair[1]))
    if pair[0] == pair[1] and len(at):  # of a run of pairs every other one
        run = np.cumsum(np.diff(at, prepend=at[0] - 2) > 1)
        first = np.flatnonzero(np.diff(run, prepend=-1))
        at = at[(np.arange(len(at)) - first[run - run[0]]) % 2 == 0]
    out = tokens.copy()
    out[at] = token
    return np.delete(out, at + 1)


def learned_pairs(text: np.ndarray, count: int) -> list[Pair]:
    """The first pairs of a text; of equally frequent ones the smallest."""
    tokens, pairs = text.astype(np.int64), list[Pair]()
    for i in range(count):
        codes, counts = np.unique(tokens[:-1] * (256 + count) + tokens[1:], return_counts=True)
        if not len(counts) or counts.max() < 2:
            break
        a, b = divmod(int(codes[counts.argmax()]), 256 + count)
        pairs.append((a, b))
        tokens = joined(tokens, (a, b), 256 + i)
    return pairs


def encoded(text: np.ndarray, pairs: Sequence[Pair]) -> np.ndarray:
    """The text in tokens, pairs joined in the order in which they were learned."""
    tokens = text.astype(np.int64)
    for i, pair in enumerate(pairs):
        tokens = joined(tokens, pair, 256 + i)
    return tokens


def decoded(tokens: Sequence[int], pairs: Sequence[Pair]) -> bytes:
    """The bytes that tokens stand for."""
    pieces = [bytes([i]) for i in range(256)]
    for a, b in pairs:
        pieces.append(pieces[a] + pieces[b])
    return b"".join(pieces[token] for token in tokens)
