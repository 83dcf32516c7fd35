"""What people do: survey, watch, design, check, estimate a dimension, test invariance; a file or a folder each."""
