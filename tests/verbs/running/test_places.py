"""Warnings of a watched script are those that it has alone, at the same places."""

WARNED = """
import torch, warnings
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
def own():
    warnings.warn("of its own", stacklevel=2)
for step in range(30):
    x = torch.randn(8, 4)
    loss = F.mse_loss(model(x), x[:, 0])  # sizes that differ: warned of in Python
    other = nn.MSELoss()(model(x), x[:, 1])
    turned = torch.zeros(2, 3, 4).T  # warned of in C++
    optimizer.zero_grad()
    (loss + other).backward()
    optimizer.step()
    own()
unset = model(x).sum().grad
"""


def test_warnings_name_the_lines_of_the_script(tmp_path, warm):
    (tmp_path / "train.py").write_text(WARNED)
    alone = warm.ran([str(tmp_path / "train.py")], tmp_path)
    watched = warm.ran(["-m", "theodolite", "run", str(tmp_path / "train.py")], tmp_path)
    told = [line for line in watched.stderr.splitlines() if not line.startswith("theodolite: ")]
    assert told == alone.stderr.splitlines() and alone.stderr.count("train.py") > 3, watched.stderr
