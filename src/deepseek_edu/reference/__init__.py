"""The mechanisms of DeepSeek-V4.1-Flash in NumPy, one per file, written to be read.

Only NumPy and the standard library are imported here, so that every file runs unchanged in CPython and in Pyodide.
Everything is one sequence at a time: T positions, no batch dimension. A reader may take the files in this order:

    activations, norms, rope            the small parts
    attention, window                   one query over its last W positions, and a sink
    compressor, indexer, csa2           entries of several tokens, choosing among them, sharing both between layers
    quant, storage, cache, cache_file   four-bit and eight-bit rows, what a sequence remembers, on disk
    moe, mhc, block                     experts, residual streams, one layer
    engram                              memory addressed by n-grams
    weights, linear, checkpoint         names and shapes, quantised matrices, reading the released files
    model                               the whole forward pass, the skipping prefill
    sampling, dspark, acceptance,       from logits to tokens, drafting, verifying,
    scheduler, generate                 how many drafts, the loop
    replay                              continuing a stored prefix
    vision                              images
    losses, optimizers                  what training minimises and how weights are changed (values, no gradients)
    v4_compressor, v4_attention,        the model before, for comparison
    v4_model

Shapes are written at line ends in one alphabet: T positions, N entries, H heads, D head width, C model width,
S streams, E experts, K selected, V vocabulary, R low-rank width. `deepseek_edu.verify` compares all of it with recorded
outputs of the released reference code.
"""
