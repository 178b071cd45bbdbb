"""The mechanisms of DeepSeek-V4.1-Flash in PyTorch, under the file names of `deepseek_edu.reference`.

Here everything is batched (rows of different lengths), cached, trainable and vectorised; the reference says the same
for one sequence at a time and is the place to begin reading. Both agree with each other (tests/model/test_parity.py)
and with recorded outputs of the released reference code (`deepseek_edu.verify`).

Two ideas carry the batching:

    tile    the new tokens of a call, [B T …], row by row from the left; `counts` says how many of a row are real
    line    what a row sees of its own past, [B P+T …]: the last P positions before the call, then the tile; so index i
            of the line stands P − i positions before the row's first new token, in every row alike

Shapes are written at line ends: B batch, T positions, N entries, H heads, D head width, C model width, S streams,
E experts, K selected, V vocabulary, R low-rank width.
"""
