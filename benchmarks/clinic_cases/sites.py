"""Where ailments are put: healthy scripts, one per architecture and set, and the fixed rule that splits the clinic.

An architecture belongs to one half, so that thresholds are never chosen on an architecture they are judged on; the halves use
other seeds too. The rule was written down before any run.
"""

from .networks import autoencoder, cnn, decoder, encoder, mlp, recurrent, resnet, vit
from .recipe import Recipe

CHOSEN = frozenset({"mlp", "cnn", "resnet", "encoder", "lstm", "regression", "mlp-bn", "autoencoder-narrow", "stack"})
UNSEEN = frozenset(
    {"mlp-tanh", "mlp-norm", "cnn-bn", "vit", "decoder", "gru", "autoencoder", "regression-norm", "conv-stack"}
)
SEEDS = {"chosen": (0, 1, 2), "unseen": (100, 101, 102)}


def split_of(architecture: str) -> str:
    """The half of the clinic that holds this architecture."""
    if architecture in CHOSEN:
        return "chosen"
    if architecture in UNSEEN:
        return "unseen"
    raise ValueError(f"expected an architecture of sites.py, got {architecture!r}: give it a half there")


MLP, TANH = mlp(96, 96), mlp(96, 96, activation="tanh")
SITES = {
    f"{recipe.architecture}/{recipe.data}": recipe
    for recipe in (
        Recipe("mlp", "digits", MLP, steps=400),
        Recipe("mlp", "mnist", MLP, steps=700),
        Recipe("mlp", "fashion", MLP, steps=700),
        Recipe("mlp", "clusters", MLP, steps=500),
        Recipe("mlp", "wine", mlp(16), lr=5e-3, batch=22, steps=150),
        Recipe("mlp", "breast-cancer", mlp(16), lr=2e-3, batch=32, steps=200),
        Recipe("mlp-bn", "mnist", mlp(64, 64, norm="batch"), steps=400),
        Recipe("mlp-bn", "digits", mlp(64, 64, norm="batch"), steps=300),
        Recipe("cnn", "digits", cnn(12, 24), lr=2e-3, steps=350),
        Recipe("cnn", "mnist", cnn(12, 24), lr=2e-3, steps=500),
        Recipe("cnn", "fashion", cnn(12, 24), lr=2e-3, steps=700),
        Recipe("cnn", "cifar", cnn(16, 32, 32), lr=2e-3, steps=600, decay="cosine"),
        Recipe("resnet", "digits", resnet(), lr=3e-3, steps=200, decay="cosine"),
        Recipe("resnet", "mnist", resnet(), lr=3e-3, steps=280, decay="cosine"),
        Recipe("resnet", "fashion", resnet(), lr=3e-3, steps=350, decay="cosine"),
        Recipe("encoder", "cola-direction", encoder(), lr=2e-3, steps=450, decay="cosine"),
        Recipe("lstm", "tones", recurrent("lstm"), lr=5e-3, steps=300, clip=1.0, decay="cosine"),
        Recipe("lstm", "cola-direction", recurrent("lstm"), lr=5e-3, steps=300, clip=1.0, decay="cosine"),
        Recipe("regression", "friedman", mlp(64, 64), lr=2e-3, steps=500),
        Recipe("regression", "diabetes", mlp(16), lr=3e-3, batch=32, steps=150),
        Recipe("regression", "housing", mlp(64, 64), lr=2e-3, steps=300),
        Recipe("autoencoder-narrow", "digits-itself", autoencoder(64, 12), lr=3e-3, steps=800),
        Recipe("mlp-tanh", "digits", TANH, steps=400),
        Recipe("mlp-tanh", "mnist", TANH, steps=700),
        Recipe("mlp-tanh", "fashion", TANH, steps=700),
        Recipe("mlp-tanh", "clusters", TANH, lr=2e-3, steps=500),
        Recipe("mlp-tanh", "breast-cancer", mlp(16, activation="tanh"), lr=3e-3, batch=32, steps=120),
        Recipe("mlp-norm", "digits", mlp(64, 64, norm="layer", activation="gelu"), steps=300),
        Recipe("mlp-norm", "fashion", mlp(64, 64, norm="layer", activation="gelu"), steps=600),
        Recipe("cnn-bn", "digits", cnn(12, 24, norm=True), lr=2e-3, steps=250),
        Recipe("cnn-bn", "mnist", cnn(12, 24, norm=True), lr=2e-3, steps=300),
        Recipe("cnn-bn", "fashion", cnn(12, 24, norm=True), lr=2e-3, steps=400),
        Recipe("cnn-bn", "cifar", cnn(16, 32, 32, norm=True), lr=2e-3, steps=400, decay="cosine"),
        Recipe("vit", "digits", vit(), lr=2e-3, steps=350),
        Recipe("vit", "mnist", vit(), lr=3e-3, batch=48, steps=600, decay="cosine"),
        Recipe("vit", "fashion", vit(), lr=3e-3, batch=48, steps=600, decay="cosine"),
        Recipe("decoder", "cola-letters", decoder(), lr=5e-3, batch=32, steps=650, decay="cosine"),
        Recipe("decoder", "copy", decoder(), lr=5e-3, batch=64, steps=400),
        Recipe("gru", "tones", recurrent("gru"), lr=5e-3, steps=250, clip=1.0, decay="cosine"),
        Recipe("gru", "cola-direction", recurrent("gru"), lr=5e-3, steps=300, clip=1.0, decay="cosine"),
        Recipe("autoencoder", "mnist-itself", autoencoder(128, 32), lr=2e-3, steps=900),
        Recipe("autoencoder", "fashion-itself", autoencoder(128, 32), lr=2e-3, steps=900),
        Recipe("regression-norm", "friedman", mlp(64, 64, norm="layer", activation="silu"), lr=2e-3, steps=300),
        Recipe("regression-norm", "housing", mlp(64, 64, norm="layer", activation="silu"), lr=2e-3, steps=300),
    )
}
