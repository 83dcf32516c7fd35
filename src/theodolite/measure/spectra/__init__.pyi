from .alignment import (
    Similarity as Similarity,
    feature_similarity as feature_similarity,
    gram_matrix as gram_matrix,
    gram_similarity as gram_similarity,
)
from .bulk import Bulk as Bulk, marchenko_pastur_bulk as marchenko_pastur_bulk
from .eigenvalues import condition_number as condition_number, gram_eigenvalues as gram_eigenvalues
from .entries import (
    entry_kurtosis as entry_kurtosis,
    normal_scores as normal_scores,
    score_eigenvalues as score_eigenvalues,
)
from .feature_spectra import (
    FeatureCovariance as FeatureCovariance,
    FeatureDecay as FeatureDecay,
    feature_decay as feature_decay,
    feature_rows as feature_rows,
)
from .matrices import WeightMatrix as WeightMatrix, weight_matrices as weight_matrices
from .tail_rivals import TailComparison as TailComparison, likelihood_ratio as likelihood_ratio
from .tails import (
    PowerLaw as PowerLaw,
    bootstrap_p_value as bootstrap_p_value,
    positive as positive,
    power_law as power_law,
)
from .weight_spectra import Spectrum as Spectrum, spectrum_of as spectrum_of
from .entry_tails import EntryTail as EntryTail, entry_tail as entry_tail, top_singular_value as top_singular_value
