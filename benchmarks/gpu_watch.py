"""What watching costs on a GPU: th.Watch on a GPT of 98 million parameters, AdamW, bfloat16 autocast, looks every 100 steps.

12 layers of width 768, 16,384 tokens, contexts of 256, batches of 32; the probe is 4 contexts. Times are walls after the device
has finished, memory the allocator's peak. A watched run of 410 steps is also timed whole beside the same steps bare, and its
weights are compared bit for bit. The looks of these are whole. Another run of 800 steps tells the share that looks take
as a user gets them. `python benchmarks/gpu_watch.py` from the root of the repository.
"""

import argparse
import json
import math
import statistics
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
import theodolite as th

LONGER = 800
TOKENS, CONTEXT, WIDTH, HEADS, LAYERS, BATCH, PROBE, EVERY = 16384, 256, 768, 12, 12, 32, 4, 100


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = self.attend(self.first(x)).reshape(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        seen = scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.join(seen.transpose(1, 2).reshape(n, t, d))
        return x + self.feed(self.second(x))


class Gpt(nn.Module):
    def __init__(self, tokens=TOKENS, context=CONTEXT, width=WIDTH, heads=HEADS, layers=LAYERS):
        super().__init__()
        self.token, self.place = nn.Embedding(tokens, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.last = nn.LayerNorm(width)
        self.head = nn.Linear(width, tokens, bias=False)
        self.head.weight = self.token.weight
        for p in self.parameters():
            if p.ndim > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, x):
        h = self.token(x) + self.place(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            h = block(h)
        return self.head(self.last(h))


def next_token(logits, target):
    return cross_entropy(logits.flatten(0, 1).float(), target.flatten())


def batches(count, size, device, options):
    generator = torch.Generator().manual_seed(1)
    table = torch.randint(0, options["tokens"], (options["tokens"], 4), generator=generator)
    for _ in range(count):
        rows = [torch.randint(0, options["tokens"], (size,), generator=generator)]
        for _ in range(options["context"]):
            rows.append(table[rows[-1], torch.randint(0, 4, (size,), generator=generator)])
        whole = torch.stack(rows, 1).to(device)
        yield whole[:, :-1], whole[:, 1:]


def finished(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def peak(device, reset=False):
    if device.type != "cuda":
        return float("nan")
    found = torch.cuda.max_memory_allocated() / 2**30
    if reset:
        torch.cuda.reset_peak_memory_stats()
    return found


def training(device, options):
    torch.manual_seed(0)
    sizes = {name: options[name] for name in ("tokens", "context", "width", "heads", "layers")}
    model = Gpt(**sizes).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=device.type == "cuda")

    def step(batch):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = next_token(model(batch[0]), batch[1])
        loss.backward()
        optimizer.step()

    return model, optimizer, step


def run(device, options, level):
    """The same steps with a watch of a level, or bare; seconds of each, of each look, and the peak of memory."""
    data = list(batches(8, options["batch"], device, options))
    probe = next(iter(batches(1, options["probe"], device, options)))
    model, optimizer, step = training(device, options)
    watch = None
    if level != "bare":
        watch = th.Watch(
            model,
            optimizer=optimizer,
            probe=probe,
            loss=next_token,
            every=EVERY,
            level=level,
            budget=math.inf,
            autocast=torch.bfloat16,
        )
    if level == "bare":
        for batch in data[:3]:  # compile, allocate, tune; a watched run must make the same steps in all
            step(batch)
        model, optimizer, step = training(device, options)
    peak(device, reset=True)
    finished(device)
    started = time.perf_counter()
    for number in range(options["steps"]):
        if watch is not None:
            watch(number)
        step(data[number % len(data)])
    finished(device)
    seconds = time.perf_counter() - started
    looks = [] if watch is None else [record.seconds for record in watch.records]
    notes = [] if watch is None else [note for record in watch.records for note in record.notes]
    last = {} if watch is None else {reading.quantity: reading.measured for _, reading in watch.records[-1].readings}
    return {
        "seconds": seconds,
        "looks": looks,
        "peak": peak(device),
        "notes": notes,
        "readings": last,
        "phase": "" if watch is None else watch.phase.name,
        "sum": [float(p.detach().double().sum()) for p in model.parameters()],
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def mean_price(device, options, level):
    """The share of a run of so many steps that looks take as users get them, and how many of them were whole."""
    data = list(batches(8, options["batch"], device, options))
    probe = next(iter(batches(1, options["probe"], device, options)))
    model, optimizer, step = training(device, options)
    watch = th.Watch(
        model, optimizer=optimizer, probe=probe, loss=next_token, every=EVERY, level=level, autocast=torch.bfloat16
    )
    for number in range(LONGER):
        watch(number)
        step(data[number % len(data)])
    thin = sum("thinned" in record.facts for record in watch.records)
    return {"share": watch.overhead, "looks": len(watch.records), "whole": len(watch.records) - thin}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=410)
    parser.add_argument("--small", action="store_true", help="a tiny model, to try the script out on a processor")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    sizes = (TOKENS, CONTEXT, WIDTH, HEADS, LAYERS, BATCH, PROBE)
    if chosen.small:
        sizes = (64, 16, 32, 2, 2, 8, 4)
    names = ("tokens", "context", "width", "heads", "layers", "batch", "probe")
    options = {**dict(zip(names, sizes, strict=True)), "steps": chosen.steps}
    found = {}
    for level in ("bare", "bare again", "cheap", "standard"):
        found[level] = run(device, options, level.removesuffix(" again"))
        if device.type == "cuda":
            torch.cuda.empty_cache()
    bare = found["bare"]
    step = bare["seconds"] / options["steps"]
    print(f"{bare['parameters']:,} parameters, {device}: a step takes {1e3 * step:.1f} ms, peak {bare['peak']:.2f} GiB")
    print(
        f"two bare runs end in the same weights: {found['bare again']['sum'] == bare['sum']} (fused attention may not)"
    )
    for level in ("cheap", "standard"):
        row = found[level]
        later = statistics.median(row["looks"][1:]) if len(row["looks"]) > 1 else float("nan")
        print(
            f"{level}: first look {row['looks'][0]:.2f} s, later {1e3 * later:.0f} ms: {100 * later / (EVERY * step):.2f} % "
            f"at every={EVERY}; whole run {100 * (row['seconds'] / bare['seconds'] - 1):+.1f} %; peak {row['peak']:.2f} GiB "
            f"({row['peak'] / bare['peak']:.2f} of training); weights the same: {row['sum'] == bare['sum']}; phase {row['phase']}"
        )
        mean = row["mean"] = mean_price(device, options, level)
        print(
            f"   as users get it, a run of {LONGER} steps: {mean['looks']} looks, {mean['whole']} whole, "
            f"{100 * mean['share']:.2f} %"
        )
        for note in row["notes"]:
            print("   note:", note)
        for quantity, value in row["readings"].items():
            print(f"   {quantity}: {value:.4g}")
    if chosen.json:
        chosen.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
