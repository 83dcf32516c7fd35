from .ranks import cross_class_rank as cross_class_rank, gauss_newton_rank as gauss_newton_rank
