"""The Trainer of transformers on a tiny GPT-2 that is made from its configuration."""

import tempfile

import torch
import transformers

transformers.set_seed(0)
transformers.utils.logging.set_verbosity_error()
config = transformers.GPT2Config(vocab_size=32, n_positions=16, n_embd=16, n_layer=1, n_head=2)
model = transformers.GPT2LMHeadModel(config)
rows = [{"input_ids": row, "labels": row} for row in torch.randint(0, 32, (64, 12))]
with tempfile.TemporaryDirectory() as folder:
    arguments = transformers.TrainingArguments(
        output_dir=folder,
        max_steps=20,
        per_device_train_batch_size=8,
        learning_rate=1e-2,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        save_strategy="no",
        logging_strategy="no",
        dataloader_pin_memory=False,
    )
    trainer = transformers.Trainer(model=model, args=arguments, train_dataset=rows)
    trainer.remove_callback(transformers.PrinterCallback)  # it prints how long it took
    trainer.train()
print(sum(p.double().sum().item() for p in model.parameters()))
