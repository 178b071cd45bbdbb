"""The mechanisms of DeepSeek-V4.1-Flash in NumPy, one per file, written to be read.

Only NumPy and the standard library are imported here, so that every file runs unchanged in CPython and in Pyodide.
Everything is one sequence at a time: T positions, no batch dimension. A reader may take the files in this order:

    toy_attention, toy_language         a small model with a KV cache and a small language to train on, to begin with;
                                        no part of the real model
    checks, activations, norms, rope    the small parts
    quant, storage, linear              rows of numbers in four and eight bits, arrays of them, matrices
    attention, window                   one query over its last W positions, and a sink
    compressor, indexer, csa2           entries of several tokens, choosing among them, sharing both between layers
    moe, mhc, block                     experts, residual streams, one layer
    engram                              memory addressed by n-grams
    cache, cache_file                   what a sequence remembers, in memory and on disk
    weights, checkpoint                 names and shapes, reading the released files
    run, model                          one pass through layers; the whole model, the skipping prefill
    sampling, dspark, acceptance,       from logits to tokens, drafting, verifying,
    scheduler, generate                 how many drafts, the loop
    replay, verify                      continuing a stored prefix; a batch compared with recorded outputs
    vision                              images
    losses, optimisers                  what training minimises and how weights are changed (values, no gradients)
    v4_compressor, v4_attention,        the model before, for comparison
    v4_model, v4_dspark
    verification, mutation, comparison  no part of the model: programs against tests, tests against mistakes, scores

Arguments with one meaning in every file:

    config        ModelConfig, the sizes and options of the model
    plan          LayerPlan, what the layer does: one of `config.schedule()`
    w             {released name: array}, weights of the part of the model that the function computes
    u             [T C], what the projections of a sub-block read: the collapsed streams, normalised
    streams       [T S C], the residual streams
    cache         Cache, the state of one sequence; it is changed
    position      absolute position of the first token of the call; 0 begins a sequence
    positions     integers [T], absolute positions
    frequencies   [F], angle per position of each pair of rotated channels, from rope.py
    gain, eps     of the RMSNorm: factors [n], and what is added under the root
    quantized     whether rows are stored in the formats of quant.py, or as they are
    row_format    PlainRows, FP8Rows or FP4Rows of storage.py: how rows are stored
    published     Published of csa2.py, what layers leave for those above

Float arrays are float64 unless the model or the cache is made with another `dtype`: float32 is then kept throughout.

Shapes are written at line ends in one alphabet: T positions, N entries, H heads, D head width, C model width,
S streams, E experts, K selected, V vocabulary, R low-rank width. `deepseek_edu.verify` compares all of it with recorded
outputs of the released reference code.
"""
