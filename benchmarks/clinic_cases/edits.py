"""Changes made to a network's weights or modules before training: each takes numbers and returns an edit of a model."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from .recipe import Setup

Edit = Callable[[nn.Module], nn.Module | None]
MATRICES = (nn.Linear, nn.Conv2d)


def matrices(model: nn.Module) -> list[nn.Module]:
    """The linear and convolutional layers, in the order of their making."""
    return [module for module in model.modules() if isinstance(module, MATRICES)]


def normal(std: float) -> Edit:
    """Weights normal with one deviation for every layer, as when `std` is typed by hand; biases zero."""

    @torch.no_grad()
    def edit(model: nn.Module) -> None:
        for layer in matrices(model):
            layer.weight.normal_(0, std)
            if layer.bias is not None:
                layer.bias.zero_()

    return edit


def gain(variance: float) -> Edit:
    """Weights normal with this variance over fan-in; biases zero."""

    @torch.no_grad()
    def edit(model: nn.Module) -> None:
        for layer in matrices(model):
            layer.weight.normal_(0, (variance / layer.weight[0].numel()) ** 0.5)
            if layer.bias is not None:
                layer.bias.zero_()

    return edit


def constant(value: float) -> Edit:
    """Every weight and bias of the linear and recurrent layers the same number."""

    @torch.no_grad()
    def edit(model: nn.Module) -> None:
        for module in model.modules():
            if isinstance(module, (*MATRICES, nn.RNNBase)):
                for parameter in module.parameters(recurse=False):
                    parameter.fill_(value)

    return edit


@torch.no_grad()
def _copied_columns(layer: nn.Module, kinds: int, before: int) -> None:
    """Columns that read the units of the layer before, made copies as those units are."""
    weight = layer.weight
    grouped = weight.view(weight.shape[0], before, -1)
    grouped.copy_(grouped[:, torch.arange(before) % kinds])


def copies(kinds: int) -> Edit:
    """Hidden units that are copies of the first few, in what they read and in what reads them."""

    @torch.no_grad()
    def edit(model: nn.Module) -> None:
        layers = matrices(model)
        for place, layer in enumerate(layers):
            if place:
                _copied_columns(layer, kinds, layers[place - 1].weight.shape[0])
            if place < len(layers) - 1:
                rows = torch.arange(layer.weight.shape[0]) % kinds
                layer.weight.copy_(layer.weight[rows])
                if layer.bias is not None:
                    layer.bias.copy_(layer.bias[rows])

    return edit


def low_bias(value: float, share: float) -> Edit:
    """This share of the hidden units of every layer starts with so low a bias that no input lifts them above zero."""

    @torch.no_grad()
    def edit(model: nn.Module) -> None:
        for layer in matrices(model)[:-1]:
            layer.bias[: int(share * len(layer.bias))] = value

    return edit


def recurrent_times(factor: float) -> Edit:
    """The matrices of recurrent layers times a factor."""

    @torch.no_grad()
    def edit(model: nn.Module) -> None:
        for module in model.modules():
            if isinstance(module, nn.RNNBase):
                for name, parameter in module.named_parameters():
                    if name.startswith("weight"):
                        parameter.mul_(factor)

    return edit


def ending(module: type[nn.Module], **options: object) -> Edit:
    """A last module behind the network's output."""
    return lambda model: nn.Sequential(model, module(**options))


class Detach(nn.Module):
    """The same numbers, without their past."""

    def forward(self, x: Tensor) -> Tensor:
        return x.detach()


def detached(*path: str) -> Edit:
    """The path of gradients is cut right behind the submodule of this name."""

    def edit(model: nn.Module) -> None:
        for name in path:
            parent, _, last = name.rpartition(".")
            owner = model.get_submodule(parent)
            setattr(owner, last, nn.Sequential(getattr(owner, last), Detach()))

    return edit


def low_rank(rank: int) -> Edit:
    """Square hidden matrices cut to their leading directions."""

    @torch.no_grad()
    def edit(model: nn.Module) -> None:
        for layer in matrices(model)[1:-1]:
            flat = layer.weight.flatten(1)
            u, s, v = torch.linalg.svd(flat, full_matrices=False)
            scale = flat.norm() / s[:rank].norm()
            layer.weight.copy_((u[:, :rank] * (s[:rank] * scale) @ v[:rank]).view_as(layer.weight))

    return edit


def statistics_momentum(value: float) -> Edit:
    """Batch normalization whose running statistics follow at this pace."""

    def edit(model: nn.Module) -> None:
        for module in model.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.momentum = value

    return edit


def frozen_statistics(mean: float, variance: float) -> Edit:
    """Running statistics taken over from elsewhere and hardly updated."""

    def edit(model: nn.Module) -> None:
        for module in model.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.momentum = 0.0
                module.running_mean.fill_(mean)
                module.running_var.fill_(variance)

    return edit


def all_but(*names: str) -> Callable[[nn.Module], Iterable[nn.Parameter]]:
    """The parameters whose name does not begin with any of these."""
    return lambda model: [p for name, p in model.named_parameters() if not name.startswith(names)]


def only(*names: str) -> Callable[[nn.Module], Iterable[nn.Parameter]]:
    """The parameters whose name begins with one of these."""
    return lambda model: [p for name, p in model.named_parameters() if name.startswith(names)]


def some_parameters_get_no_gradient(setup: Setup) -> bool:
    """Whether parameters that ask for a gradient got none in training."""
    return any(p.requires_grad and p.grad is None for p in setup.model.parameters())


def some_parameters_have_no_optimizer(setup: Setup) -> bool:
    """Whether parameters that ask for a gradient are in no group of the optimizer."""
    held = {id(p) for group in setup.optimizer.param_groups for p in group["params"]}
    return any(p.requires_grad and id(p) not in held for p in setup.model.parameters())
