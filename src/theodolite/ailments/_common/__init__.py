"""What several ailments share: the chart, scores, trials, and what each measures of samples, outputs and weights."""
