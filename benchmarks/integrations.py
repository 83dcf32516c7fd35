"""People's own tools, 200 steps each, with a watch and without: the same weights bit for bit, and what is found.

    PYTHONPATH=src python -m benchmarks.integrations [trainer] [lora] [sft] [accelerate] [lightning]

Small GPT-2s built from a configuration, on bytes of Python's documentation; `lora` is PEFT under the Trainer, on a base that was
trained for a while on other parts of the text, and `sft` needs the package trl. Each is trained at a good learning rate, and
once with one that is far too large, which must be found.
"""

from __future__ import annotations

import argparse
import functools
import json
import logging
import tempfile
import warnings
from typing import Any

import torch
import transformers
from benchmarks.language import token_loss, windows
from torch import Tensor, nn

import theodolite as th

STEPS, CONTEXT, BATCH, BASE_STEPS = 200, 32, 8, 200


def gpt2() -> nn.Module:
    torch.manual_seed(0)
    sizes = {"vocab_size": 256, "n_positions": CONTEXT, "n_embd": 32, "n_layer": 2, "n_head": 2}
    config = transformers.GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)
    return transformers.GPT2LMHeadModel(config)


@functools.cache
def trained_base() -> dict[str, Tensor]:
    """A base that adapters are meant for: trained for a while on other parts of the text."""
    model, draw = gpt2(), torch.Generator().manual_seed(0)
    text = windows(4000, CONTEXT - 1, 1, held_out=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(BASE_STEPS):
        some = text[torch.randint(0, len(text), (4 * BATCH,), generator=draw)]
        value = model(input_ids=some, labels=some).loss
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
    return {name: value.clone() for name, value in model.state_dict().items()}


def rows() -> Tensor:
    return windows(400, CONTEXT - 1, 0, held_out=False)


def same(one: nn.Module, other: nn.Module) -> bool:
    a, b = one.state_dict(), other.state_dict()
    return all(torch.equal(a[name], b[name]) for name in b)


def arguments(kind: Any, folder: str, lr: float, **more: Any) -> Any:
    return kind(
        output_dir=folder,
        max_steps=STEPS,
        per_device_train_batch_size=BATCH,
        learning_rate=lr,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        save_strategy="no",
        logging_steps=50,
        dataloader_pin_memory=False,
        seed=0,
        **more,
    )


def trainer(lr: float, watched: bool, *, adapter: bool = False) -> tuple[nn.Module, Any]:
    from theodolite.integrations.transformers import WatchCallback

    model: Any = gpt2()
    if adapter:
        import peft

        model.load_state_dict(trained_base())
        torch.manual_seed(1)
        model = peft.get_peft_model(model, peft.LoraConfig(r=4, target_modules=["c_attn"], fan_in_fan_out=True))
    data = [{"input_ids": row, "labels": row} for row in rows()]
    callback = WatchCallback(every=50, level="cheap")
    with tempfile.TemporaryDirectory() as folder:
        told = arguments(transformers.TrainingArguments, folder, lr, gradient_accumulation_steps=2)
        run = transformers.Trainer(model=model, args=told, train_dataset=data, callbacks=[callback] if watched else [])
        run.train()
    shown = [row for row in run.state.log_history if "theodolite/finding" in row]
    return model, (callback.watch, shown)


def lora(lr: float, watched: bool) -> tuple[nn.Module, Any]:
    return trainer(10 * lr, watched, adapter=True)


def sft(lr: float, watched: bool) -> tuple[nn.Module, Any]:
    import trl
    from datasets import Dataset

    from theodolite.integrations.transformers import WatchCallback

    model = gpt2()
    data = Dataset.from_dict({"input_ids": rows().tolist(), "attention_mask": torch.ones_like(rows()).tolist()})
    callback = WatchCallback(every=50, level="cheap")
    with tempfile.TemporaryDirectory() as folder:
        told = arguments(trl.SFTConfig, folder, lr, max_length=CONTEXT, packing=False, bf16=False, pad_token="\x00")
        run = trl.SFTTrainer(
            model=model,
            args=told,
            train_dataset=data,
            processing_class=byte_tokenizer(),
            callbacks=[callback] if watched else [],
        )
        run.train()
    shown = [row for row in run.state.log_history if "theodolite/finding" in row]
    return model, (callback.watch, shown)


def byte_tokenizer() -> Any:
    from tokenizers import Tokenizer, models

    own = Tokenizer(models.WordLevel({chr(i): i for i in range(256)}, unk_token=chr(0)))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=own, pad_token=chr(0), eos_token=chr(0))


def accelerate(lr: float, watched: bool) -> tuple[nn.Module, Any]:
    from accelerate import Accelerator

    helper = Accelerator(cpu=True)
    model = gpt2()
    torch.manual_seed(1)
    loader = torch.utils.data.DataLoader(rows(), batch_size=BATCH, shuffle=True)
    model, optimizer, loader = helper.prepare(model, torch.optim.AdamW(model.parameters(), lr=lr), loader)
    first = rows()[:BATCH]
    shown: list[Any] = []
    watch = None
    if watched:
        watch = th.Watch(
            model,
            probe={"input_ids": first, "labels": first},
            loss=shifted,
            optimizer=optimizer,
            every=50,
            level="cheap",
            on_finding=lambda step, finding: shown.append(finding.name),
        )
    step = 0
    while step < STEPS:
        for batch in loader:
            value = model(input_ids=batch, labels=batch).loss
            optimizer.zero_grad()
            helper.backward(value)
            optimizer.step()
            if watch is not None:
                watch(step)
            step += 1
    return model, (watch, shown)


def shifted(logits: Any, labels: Tensor) -> Tensor:
    return token_loss(logits[:, :-1], labels[:, 1:])


def lightning(lr: float, watched: bool) -> tuple[nn.Module, Any]:
    import lightning as pl

    from theodolite.integrations.lightning import WatchCallback

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = gpt2()

        def forward(self, x: Tensor) -> Tensor:
            return self.net(input_ids=x).logits

        def training_step(self, batch: Any, index: int) -> Tensor:
            return token_loss(self(batch[0]), batch[1])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters(), lr=lr)

    module = Module()
    pl.seed_everything(0, verbose=False)
    data = torch.utils.data.TensorDataset(rows()[:, :-1].contiguous(), rows()[:, 1:].contiguous())
    shown: list[Any] = []
    callback = WatchCallback(
        every=50, level="cheap", loss=token_loss, on_finding=lambda step, finding: shown.append(finding.name)
    )
    with tempfile.TemporaryDirectory() as folder:
        fit = pl.Trainer(
            max_steps=STEPS,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=folder,
            callbacks=[callback] if watched else [],
        )
        fit.fit(module, torch.utils.data.DataLoader(data, batch_size=BATCH, shuffle=True))
    return module, (callback.watch, shown)


TOOLS = {"trainer": trainer, "lora": lora, "sft": sft, "accelerate": accelerate, "lightning": lightning}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", nargs="*", default=list(TOOLS))
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.getLogger("theodolite").setLevel(logging.CRITICAL)
    for name in given.tools:
        for kind, lr in (("healthy", 3e-3), ("hot", 1.0)):
            bare, _ = TOOLS[name](lr, False)
            model, (watch, shown) = TOOLS[name](lr, True)
            found = [f.name for f in watch.diagnosis.findings if f.severity != "note"]
            said = {
                "tool": name,
                "kind": kind,
                "identical": same(model, bare),
                "found": found,
                "shown": [str(row) if isinstance(row, str) else row["theodolite/finding"] for row in shown],
            }
            said["headline"] = watch.diagnosis.headline[:160]
            print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
