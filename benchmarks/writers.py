"""A watch that writes to the services people log to, with their own packages, offline: what arrived beside what was read.

    python benchmarks/writers.py

wandb, mlflow (mlflow-skinny is enough) and aim are tried where they import. A row is right where every quantity of every look
has arrived under its step.
"""

import os
import tempfile
from pathlib import Path

import torch
from torch import nn

import theodolite as th

LOSS = "theodolite/loss/loss-on-the-probe"


def watched(writer):
    """A short training of a small classifier, looked at every second step."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    x, y = torch.randn(32, 4), torch.arange(32) % 3
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    watch = th.Watch(model, optimizer=optimizer, probe=(x, y), every=2, writer=writer)
    for step in range(5):
        watch(step)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    watch.close()
    losses = {record.step: record.facts["loss"] for record in watch.records}
    return losses, len({(look, r.quantity) for record in watch.records for look, r in record.readings})


def by_wandb(folder):
    import wandb

    os.environ["WANDB_SILENT"] = "true"
    with wandb.init(mode="offline", dir=folder, project="watched", settings=wandb.Settings(console="off")) as run:
        losses, quantities = watched(run)
        run.log({"end": 1.0}, step=max(losses) + 1)  # a step is closed when the next one comes
        arrived = sum(key.startswith("theodolite/") for key in run.summary.keys())  # noqa: SIM118  no mapping of Python's
        return quantities, arrived, run.summary[LOSS] == losses[max(losses)]


def by_mlflow(folder):
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    import mlflow

    mlflow.set_tracking_uri((folder / "runs").as_uri())
    mlflow.set_experiment("watched")
    with mlflow.start_run() as run:
        losses, quantities = watched(mlflow)
    client = mlflow.MlflowClient()
    found = {point.step: point.value for point in client.get_metric_history(run.info.run_id, LOSS)}
    return quantities, len(client.get_run(run.info.run_id).data.metrics), found == losses


def by_aim(folder):
    from aim import Run

    run = Run(repo=str(folder), log_system_params=False)
    losses, quantities = watched(run)
    metrics = {metric.name: metric for metric in run.metrics() if metric.name.startswith("theodolite/")}
    found = sorted(metrics[LOSS].values.sparse_numpy()[1].tolist())  # its keys are hashes of the steps
    run.close()
    return quantities, len(metrics), found == sorted(losses.values())


def main():
    print("service   quantities   arrived   losses by step")
    for name, tried in (("wandb", by_wandb), ("mlflow", by_mlflow), ("aim", by_aim)):
        with tempfile.TemporaryDirectory() as folder:
            try:
                quantities, arrived, right = tried(Path(folder))
            except ImportError as error:
                print(f"{name:10s}not run: {error}")
                continue
        print(f"{name:10s}{quantities:10d}{arrived:10d}   {'as read' if right else 'OTHERS'}")


if __name__ == "__main__":
    main()
