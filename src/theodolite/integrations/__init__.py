"""Watches inside other people's training loops. Each module needs the package it is named after; nothing imports them.

TensorBoard needs no module: a ``torch.utils.tensorboard.SummaryWriter`` is passed to ``Watch(writer=...)`` as it is.
"""
