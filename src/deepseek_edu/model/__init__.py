"""The mechanisms of DeepSeek-V4.1-Flash in PyTorch, under the file names of `deepseek_edu.reference`.

Here everything is batched (rows of different lengths), cached, trainable and vectorised; the reference says the same
for one sequence at a time and is the place to begin reading. Both agree with each other (tests/model/test_parity.py)
and with recorded outputs of the released reference code (`deepseek_edu.verify`).

Two ideas carry the batching:

    tile    the new tokens of a call, [B T …], row by row from the left; `counts` says how many of a row are real
    line    what a row sees of its own past, [B P+T …]: the last P positions before the call, then the tile; so index i
            of the line stands P − i positions before the row's first new token, in every row alike

A reader may take the files in this order:

    norms, rope, linear, selection      the small parts
    span, window, tiles                 where the tokens of a batch stand, and who sees whom
    quant, storage, cache, cache_file   four-bit and eight-bit rows, what a batch remembers, on disk
    attention, compressor, indexer,     one attention layer
    csa2
    moe, mhc, block, engram             experts, residual streams, one layer, n-gram memory
    model, run, output                  the whole forward pass, the skipping prefill
    sampling, dspark, acceptance,       from logits to tokens, drafting, verifying, the loop
    generate, replay                    and continuing a stored prefix
    losses, optimisers                  training
    vision, checkpoint, verify          images, released files, recorded outputs

Shapes are written at line ends: B batch, T positions, N entries, H heads, D head width, C model width, S streams,
E experts, K selected, V vocabulary, R low-rank width.
"""
