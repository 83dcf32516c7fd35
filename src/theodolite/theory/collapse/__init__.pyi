from .simplex import simplex_corners as simplex_corners, simplex_cosine as simplex_cosine
