"""What is seen of training between looks: its steps, gradients, batches and losses, at next to no price."""
