"""The mechanisms of DeepSeek-V4.1-Flash in PyTorch, under the file names of `deepseek_edu.reference`.

Here everything is batched (rows of different lengths), cached, trainable and vectorised; the reference says the same
for one sequence at a time and is the place to begin reading. Both agree with each other (tests/model/test_parity.py)
and with recorded outputs of the released reference code (`deepseek_edu.verify`).

Two ideas carry the batching:

    tile    the new tokens of a call, [B T …], row by row from the left; `counts` says how many of a row are real
    line    what a row sees of its own past, [B P+T …]: the last P positions before the call, then the tile; so index i
            of the line stands P − i positions before the row's first new token, in every row alike

A reader may take the files in this order:

    linear, one_token, norms, rope,     the small parts; one token at a time on a CPU
    selection
    span, window, tiles                 where the tokens of a batch stand, and who sees whom
    quant, storage, cache, cache_file   four-bit and eight-bit rows, what a batch remembers, on disk
    attention, compressor, indexer,     one attention layer
    csa2
    moe, mhc, block, engram             experts, residual streams, one layer, n-gram memory
    language_model, model, run, step,   the whole forward pass, the skipping prefill, decoding on a CPU
    output
    sampling, dspark, acceptance,       from logits to tokens, drafting, verifying, the loop
    generate, replay                    and continuing a stored prefix
    losses, optimisers                  training
    vision, checkpoint, verify          images, released files, recorded outputs
    v4_cache, v4_compressor,            the model before, for comparison
    v4_reading, v4_attention,
    v4_streams, v4_experts,
    v4_block, v4_step, v4_run,
    threads, v4_model

Arguments with one meaning in every file:

    config        ModelConfig, the sizes and options of the model
    plan          LayerPlan, what the layer does: one of `config.schedule()`
    where         {"device": …, "dtype": …} of the parameters
    u             [B T C], what the projections of a sub-block read: the collapsed streams, normalised
    streams       [B T S C], the residual streams
    cache         Cache, the state of all rows; it is changed
    span          Span: where the tokens of the tile stand in their rows
    rotation      Rotation of rope.py: angles of the positions
    row_format    PlainRows, FP8Rows or FP4Rows of storage.py: how rows are stored
    quantized     whether rows are stored in the formats of quant.py, or as they are
    batch         number of rows
    device        where arrays lie, as PyTorch names it
    spare         rows that can be taken back; a block of drafts by default
    eps           added under the root of an RMSNorm

Shapes are written at line ends: B batch, T positions, N entries, H heads, D head width, C model width, S streams,
E experts, K selected, V vocabulary, R low-rank width.
"""
