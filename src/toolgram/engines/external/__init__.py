"""For engines that are not ours: tokens and masks for loops of transformers and MLX-LM, options for vLLM in Python."""

from toolgram.errors import needing

with needing("embedded", "a token mask"):
    import numpy as numpy
