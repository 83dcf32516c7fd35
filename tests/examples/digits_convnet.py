"""Handwritten digits with a convolutional network: arguments, epochs, training, a test after each, a schedule, a saved model."""

import argparse
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3)
        self.conv2 = nn.Conv2d(16, 16, 3)
        self.drop1, self.drop2 = nn.Dropout2d(0.1), nn.Dropout(0.3)
        self.fc1, self.fc2 = nn.Linear(16 * 4, 32), nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        x = self.drop1(F.max_pool2d(x, 2)).flatten(1)
        return F.log_softmax(self.fc2(self.drop2(F.relu(self.fc1(x)))), dim=1)


def train(model, loader, optimizer, epoch):
    model.train()
    for index, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.nll_loss(model(x), y)
        loss.backward()
        optimizer.step()
        if index % 10 == 0:
            print(f"epoch {epoch}, batch {index}: loss {loss.item():.6f}")


@torch.no_grad()
def test(model, x, y):
    model.eval()
    output = model(x)
    right = (output.argmax(1) == y).sum().item()
    print(f"test: loss {F.nll_loss(output, y).item():.6f}, {right} of {len(y)} right")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(1)
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    y = torch.tensor(digits.target)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x[:640], y[:640]), batch_size=64, shuffle=True)
    model = Net()
    optimizer = torch.optim.Adadelta(model.parameters(), lr=options.lr)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in range(options.epochs):
        train(model, loader, optimizer, epoch)
        test(model, x[640:1000], y[640:1000])
        schedule.step()
    if options.save:
        with tempfile.TemporaryDirectory() as folder:
            torch.save(model.state_dict(), Path(folder) / "digits.pt")
    print(sum(p.double().sum().item() for p in model.parameters()))


if __name__ == "__main__":
    main()
