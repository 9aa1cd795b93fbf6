"""What times on an H200 are compared with: the floor of the hardware, and the best measurement of another engine."""

# What an H200 does at most, measured: a copy between its memories, and a product of 8192 x 8192 matrices in bfloat16.
BYTES_PER_S = 4.3e12
FLOP_PER_S = 790e12

# Per shape: bytes of the matrices that a step reads (bfloat16), FLOP of the matrices a token, FLOP of attention per
# squared token of a sequence.
COSTS = {
    "qwen3-0.6b": (881e6, 0.881e9, 4 * 2048 * 28),
    "xlm-roberta-large": (604e6, 0.604e9, 4 * 1024 * 24),
}

# vLLM 0.22.0 on an H200, bfloat16, same shapes with random weights, pre-tokenized, FlashAttention 3, torch.compile;
# measured 2026-11-29. The better one of its defaults and of graphs for every 512 tokens with batches of 32,768 tokens,
# in process or through HTTP. Latency: p50 in ms of (sequences, tokens each). Throughput: embeddings a second by tokens.
VLLM = "vLLM 0.22.0"
VLLM_MS = {
    "qwen3-0.6b": {(1, 16): 3.96, (1, 128): 3.83, (1, 512): 3.78, (1, 4096): 14.7,
                   (5, 512): 7.5, (25, 512): 30.2, (50, 512): 60.0},
    "xlm-roberta-large": {(1, 16): 5.28, (1, 128): 3.83, (1, 512): 3.83, (1, 4096): 10.0,
                          (5, 512): 5.5, (25, 512): 20.7, (50, 512): 40.1},
}
VLLM_PER_S = {
    "qwen3-0.6b": {512: 901, 1024: 433, 4096: 83},
    "xlm-roberta-large": {512: 1217, 1024: 596, 4096: 112},
}


def floor_seconds(shape, sequences, tokens):
    """The least time of a step: its matrices once through memory, or its arithmetic; None for other shapes."""
    if shape not in COSTS:
        return None
    matrix_bytes, flop_per_token, flop_per_square = COSTS[shape]
    flop = sequences * (tokens * flop_per_token + tokens * tokens * flop_per_square)
    return max(matrix_bytes / BYTES_PER_S, flop / FLOP_PER_S)


def floor_per_s(shape, tokens):
    """Embeddings a second when only the arithmetic counts."""
    if shape not in COSTS:
        return None
    _, flop_per_token, flop_per_square = COSTS[shape]
    return FLOP_PER_S / (tokens * flop_per_token + tokens * tokens * flop_per_square)
