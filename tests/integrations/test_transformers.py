"""A real Trainer on tiny models made from their configurations, without any download."""

import pytest
import torch
import transformers

from theodolite.integrations.transformers import WatchCallback, next_token_loss


def fitted(model, rows, tmp_path, callback, **options):
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"),
        max_steps=6,
        per_device_train_batch_size=4,
        learning_rate=1e-2,
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
    callback = WatchCallback(every=3, page=tmp_path / "run.html")
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
    watch = fitted(model, rows, tmp_path, WatchCallback(every=5, loss=next_token_loss))
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
