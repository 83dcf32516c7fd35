"""Neural collapse: where the last features of a classifier end when it is trained on beyond zero error."""
