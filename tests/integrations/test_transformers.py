"""A real Trainer on tiny models made from their configurations, without any download."""

import math
import pydoc_data.topics

import numpy as np
import pytest
import torch
import transformers
from benchmarks.bpe import encoded, learned_pairs

from theodolite.integrations.transformers import WatchCallback, next_token_loss


def fitted(model, rows, tmp_path, callback, *, steps=6, lr=1e-2, **options):
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"),
        max_steps=steps,
        per_device_train_batch_size=4,
        learning_rate=lr,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        save_strategy="no",
        logging_strategy="no",
        dataloader_pin_memory=False,
        **options,
    )
    transformers.Trainer(model=model, args=arguments, train_dataset=rows, callbacks=[callback]).train()
    return callback.watch


def test_a_tiny_bert_is_watched(tmp_path):
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=20,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        num_labels=3,
        max_position_embeddings=16,
    )
    model = transformers.BertForSequenceClassification(config)
    rows = [
        {
            "input_ids": torch.randint(0, 20, (8,)),
            "attention_mask": torch.ones(8, dtype=torch.long),
            "labels": torch.tensor(n % 3),
        }
        for n in range(24)
    ]
    callback = WatchCallback(every=3, budget=math.inf, page=tmp_path / "run.html")
    watch = fitted(model, rows, tmp_path, callback, optim="sgd")
    assert [record.step for record in watch.records] == [0, 3, 6]
    assert watch.records[0].lr == pytest.approx(1e-2)
    assert watch.records[-1].value("largest Hessian eigenvalue") > 0
    assert watch.records[-1].value("drift of the tangent kernel since the start") > 0
    assert any(look == "collapse" for look, _ in watch.records[-1].readings)
    assert "sharpness" in (tmp_path / "run.html").read_text()


def test_a_tiny_gpt2_is_watched_with_the_loss_of_language_models(tmp_path):
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=20, n_positions=16, n_embd=16, n_layer=1, n_head=2)
    model = transformers.GPT2LMHeadModel(config)
    rows = [{"input_ids": row, "labels": row} for row in torch.randint(0, 20, (24, 8))]
    watch = fitted(model, rows, tmp_path, WatchCallback(every=5, budget=math.inf, loss=next_token_loss))
    last = watch.records[-1]
    assert watch.records[1].lr > 0 and last.lr is None  # the schedule has ended at nothing
    assert watch.records[1].value("largest preconditioned Hessian eigenvalue") > 0  # the edge is AdamW's own
    assert watch.records[1].facts["edge"] > 38 / 1e-2
    assert watch.records[1].value("change of the loss by the last step, measured over predicted") is not None
    batch = torch.stack([row["input_ids"] for row in rows[:4]])
    assert last.value("loss on the probe") > 0
    model.eval()
    with torch.no_grad():
        own = model(input_ids=batch, labels=batch).loss.item()
    assert next_token_loss(model(input_ids=batch).logits, batch).item() == pytest.approx(own, rel=1e-5)


def pieces(pairs=64, length=24):
    """Rows of Python's own documentation in byte pairs that were learned from it."""
    said = "\n".join(value for _, value in sorted(pydoc_data.topics.topics.items()))[:20_000]
    text = np.frombuffer(said.encode("ascii", "replace"), dtype=np.uint8)
    tokens = torch.from_numpy(encoded(text, learned_pairs(text, pairs)))
    return tokens[: len(tokens) // length * length].reshape(-1, length)


def test_a_step_far_too_large_is_named_though_its_schedule_ends_at_the_loss_of_ignoring_the_input(tmp_path):
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=320, n_positions=24, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0
    )
    rows = [{"input_ids": row, "labels": row} for row in pieces()]
    callback = WatchCallback(every=30, level="cheap")
    watch = fitted(transformers.GPT2LMHeadModel(config), rows, tmp_path, callback, steps=90, lr=1.0)
    assert watch.diagnosis.findings[0].name == "step-too-large"
    assert watch.diagnosis.findings[0].suggested["lr"] < 0.3
