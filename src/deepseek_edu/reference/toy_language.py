"""A small language of commands to train on: all its sentences are known, and so is the best loss that is possible.

    move the red circle left once then paint it blue
    paint the red circle blue then move it left once

Each sentence has ten words. One rule reaches far: nothing is painted in the colour that it has. Who only looks at the
word before cannot know it; the last word of the first sentence has to look back at the third.

A loss means little without something to compare it with. Here are four predictors that need no training, only counts:
all words alike, how often a word occurs, how often it follows the word before, and the language itself.

    sentences -> split -> encode [S L] -> next_token_pairs -> a predictor -> predicted [S L−1] -> cross_entropy

Source: our own; the functions are textbook.
"""

import itertools
from collections import Counter

import numpy as np

COLOURS = ("red", "blue", "green", "yellow", "black")  # what a thing has, and what it can be painted in
SHAPES = ("circle", "square", "star", "arrow")  # the things
DIRECTIONS = ("left", "right", "up", "down")  # where they are moved
TIMES = ("once", "twice", "thrice")  # how often
START, END = "<start>", "<end>"  # tokens before the first word and after the last
VOCABULARY = (START, END, "move", "paint", "the", "then", "it", *COLOURS, *SHAPES, *DIRECTIONS, *TIMES)
"""All tokens; a token's id is its place here."""

_IDS = {word: id for id, word in enumerate(VOCABULARY)}


def sentences(colour_rule=True):
    """Return all sentences of the language, text, always in the same order.

    Args:
        colour_rule: whether nothing is painted in the colour it has; without the rule there are more sentences.

    >>> len(sentences()), sentences()[0]
    (1920, 'move the red circle left once then paint it blue')
    """
    made = []
    for moves_first in (True, False):
        for colour, shape, direction, times, new in itertools.product(COLOURS, SHAPES, DIRECTIONS, TIMES, COLOURS):
            if colour_rule and new == colour:
                continue
            if moves_first:
                made.append(f"move the {colour} {shape} {direction} {times} then paint it {new}")
            else:
                made.append(f"paint the {colour} {shape} {new} then move it {direction} {times}")
    return made


def split(texts, seed=0, held_out=0.2):
    """Return (train, held-out), lists that share no sentence; the same for the same seed, in the order of `texts`.

    Args:
        texts: sentences, each once.
        seed: of the draw.
        held_out: share that is never trained on.
    """
    drawn = np.random.default_rng(seed).permutation(len(texts))[: round(held_out * len(texts))]
    kept = set(drawn.tolist())
    return [t for i, t in enumerate(texts) if i not in kept], [t for i, t in enumerate(texts) if i in kept]


def encode(texts):
    """Return ids [S L] of sentences of equal length, from START to END.

    Raises:
        ValueError: a word is not in the language.

    >>> encode(["move the red circle left once then paint it blue"])[0].tolist()
    [0, 2, 4, 7, 12, 16, 20, 5, 3, 6, 8, 1]
    """
    unknown = sorted({word for text in texts for word in text.split()} - set(VOCABULARY))
    if unknown:
        raise ValueError(f"texts: got the words {', '.join(unknown)}; expected words of VOCABULARY")
    return np.array([[_IDS[word] for word in (START, *text.split(), END)] for text in texts])


def decode(ids):
    """Return the text of a row of ids [L], without START and up to END."""
    words = [VOCABULARY[id] for id in ids]
    words = words[words[0] == START :]
    return " ".join(words[: words.index(END)] if END in words else words)


def next_token_pairs(tokens):
    """Return what a model reads and what it has to say, [S L−1] each: every token against the one after it."""
    return tokens[:, :-1], tokens[:, 1:]


def uniform(vocabulary):
    """Return probabilities [V] that know nothing: all alike."""
    return np.full(vocabulary, 1 / vocabulary)


def unigram(tokens, vocabulary):
    """Return probabilities [V] of the next token by how often it was one in tokens [S L]; each counts once more."""
    counts = np.bincount(next_token_pairs(tokens)[1].ravel(), minlength=vocabulary) + 1
    return counts / counts.sum()


def bigram(tokens, vocabulary):
    """Return probabilities [V V] by how often one token followed another in tokens [S L]; each counts once more."""
    inputs, targets = next_token_pairs(tokens)
    pairs = np.bincount((inputs * vocabulary + targets).ravel(), minlength=vocabulary**2)
    counts = pairs.reshape(vocabulary, vocabulary) + 1
    return counts / counts.sum(axis=1, keepdims=True)


def predicted(table, tokens):
    """Return the probability of each next token of tokens [S L], by a table [V] or [V V]: [S L−1]."""
    inputs, targets = next_token_pairs(tokens)
    return table[targets] if table.ndim == 1 else table[inputs, targets]


def predicted_by_the_language(tokens, everything):
    """Return the same [S L−1] for who knows all sentences, [A L], and which of them begin like tokens [S L]."""
    beginnings = Counter(tuple(row[:end]) for row in everything.tolist() for end in range(1, len(row) + 1))
    return np.array(
        [
            [beginnings[tuple(row[: end + 1])] / beginnings[tuple(row[:end])] for end in range(1, len(row))]
            for row in tokens.tolist()
        ]
    )


def cross_entropy(probabilities):
    """Return the mean of −log p over the probabilities of what came next, any shape; in nats.

    >>> round(cross_entropy(np.array([0.5, 0.125])), 4)  # two bits, log 4
    1.3863
    """
    return float(-np.log(probabilities).mean())


def perplexity(loss):
    """Return e^loss: among how many equally likely words the same loss would choose.

    >>> round(perplexity(np.log(23.0)), 4)
    23.0
    """
    return float(np.exp(loss))
