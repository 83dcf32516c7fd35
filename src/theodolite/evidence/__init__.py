"""What can be known of a subject: its samples, its task, its layers' signals, its past, and trials on copies of its training."""
