"""The `dspark` widget's round as a view: a row for each step over columns of positions, and what is left of P − Q."""

import numpy as np

from deepseek_edu.drawing import SMALL, Canvas, Picture, draw, kit
from deepseek_edu.drawing.numbers import fixed

from .dspark_round import BLOCK, START, WORDS, Round, play, undone
from .parts import Metric, Metrics, Prose, Table, View

STEPS = ("1 Draft", "2 Target runs once", "3 Accept or reject", "4 One more word", "5 Roll back")
_DRAFT, _TARGET, _ACCEPT, _MORE, _BACK = range(1, 6)


def round_view(number: int, greedy: bool, step: int) -> View:
    """The part of the widget that goes through one round."""
    one = play(number, greedy)
    rejected = BLOCK - one.accepted
    said = " ".join(WORDS[word] for word in one.emitted)
    ran = step >= _TARGET
    items = [Metric("Runs of the target", int(ran), note=f"over {BLOCK + 1} positions at once" if ran else "not yet")]
    if step >= _ACCEPT:
        items.append(Metric("Drafts that stand", one.accepted, unit=f"of {BLOCK}", role="result"))
    if step >= _MORE:
        items.append(Metric("Words of this round", len(one.emitted), note=said, role="result"))
    if step >= _BACK:
        items.append(Metric("Positions taken back", rejected, note=_positions(one) if rejected else "none"))
    parts = [round_picture(one, step), Metrics(tuple(items), "The round"), Prose(_words(one, step))]
    if step >= _BACK:
        parts.append(
            Table(
                "What the released model takes back here",
                ("State", "Count", "Where"),
                undone(one.accepted),
                folded=True,
            )
        )
    return View(tuple(parts), _summary(one, step, said))


def _positions(one: Round) -> str:
    first, last = START + 1 + one.accepted, START + BLOCK
    return f"position {last}" if first == last else f"positions {first} to {last}"


def _summary(one: Round, step: int, said: str) -> str:
    drafts = " ".join(WORDS[word] for word in one.drafts)
    text = f"After “{WORDS[one.first]}” the drafter proposes “{drafts}”."
    if step == _TARGET:
        text += f" The target runs once over these and gives {BLOCK + 1} distributions."
    if step >= _ACCEPT:
        text += f" {one.accepted} of {BLOCK} drafts stand{'s' * (one.accepted == 1)}."
    if step >= _MORE:
        text += f" The round emits “{said}”."
    if step >= _BACK:
        text += f" Taken back: {_positions(one)}." if one.accepted < BLOCK else " Nothing is taken back."
    return text


def _words(one: Round, step: int) -> str:
    first = WORDS[one.first]
    if step == _DRAFT:
        how = "takes the word it finds most likely" if one.greedy else "draws each word from its own distribution Q"
        return (
            f"The word “{first}” is known. The drafter {how}; each depends on the draft before it. It keeps Q: without "
            "it nothing can be tested later."
        )
    if step == _TARGET:
        return (
            f"“{first}” and the five drafts go through the target together, as a prompt of six tokens would. "
            "Out come six distributions: what the target would say at each place if the drafts before it are right, "
            "and one for the place behind the block."
        )
    if step == _ACCEPT:
        return _acceptance_words(one)
    if step == _MORE:
        if one.accepted == BLOCK:
            return "All five stand. The sixth distribution is there, so the target adds a word of its own, the bonus."
        place = one.accepted + 1
        if one.greedy:
            return f"At draft {place} the target’s own choice, “{WORDS[one.following]}”, takes the place of the draft."
        return (
            f"Draft {place} fell. Its replacement is drawn from what P has more than Q, normalised: "
            f"“{WORDS[one.following]}”, with probability {fixed(float(one.left[one.following]), 2)}. Words that "
            "the drafter proposes too often get nothing here."
        )
    if one.accepted == BLOCK:
        return (
            f"All positions up to {START + BLOCK} stay. “{WORDS[one.following]}” begins the next round at position "
            f"{START + BLOCK + 1}; it has not been through the target yet."
        )
    return (
        f"The target has written state for {_positions(one)}, for words that are not part of the text. All of it is "
        "undone: window entries, global entries that became complete, half-filled groups, Engram history. "
        f"“{WORDS[one.following]}” begins the next round at position {START + 1 + one.accepted}."
    )


def _acceptance_words(one: Round) -> str:
    if one.greedy:
        rule = "At temperature 0 a draft stands if it is the target’s most likely word. "
    else:
        rule = "A draft stands if a random number lies below min(1, P/Q). "
    if one.accepted == BLOCK:
        return rule + "All five do."
    rest, word = BLOCK - one.accepted - 1, WORDS[one.drafts[one.accepted]]
    after = f" The {rest} behind it are not looked at: they follow a word that is not there." if rest else ""
    return f"{rule}From the left, draft {one.accepted + 1}, “{word}”, is the first to fall.{after}"


def round_picture(one: Round, step: int) -> Picture:
    """Rows of the five steps over columns of positions."""

    def paint(width: float) -> Canvas:
        canvas = Canvas(width, 0)
        narrow = canvas.narrow
        left = 0.0 if narrow else 146.0
        column = (width - left) / (BLOCK + 2)
        inner = column - 6

        def x(place: int) -> float:
            return left + column * place + 3

        def row(y: float, number: int, note: str) -> float:
            """The name of a step; returns where its row begins."""
            ink = "k-text--strong" if number <= step else "k-muted"
            with canvas.pick("step", number, 0, y):
                canvas.text(0, 14 if narrow else 18, STEPS[number - 1], ink, "start")
                place = (kit.text_width(STEPS[number - 1]) + 10, 14) if narrow else (0, 33)
                canvas.text(*place, note, "k-muted", "start", SMALL)
            return y + 20 if narrow else y

        with canvas.group():
            canvas.text(0, 12, "position", "k-muted", "start", SMALL)
        y = 16.0 if narrow else 0.0
        with canvas.group():
            for place in range(BLOCK + 2):
                canvas.text(x(place) + inner / 2, y + 12, START + place, "k-muted", size=SMALL)
        y = row(y + 20, _DRAFT, "chance Q of each")
        with canvas.group(x(0), y):
            kit.box(canvas, 0, 0, inner, 42, WORDS[one.first], "known", "hidden")
        for place, word in enumerate(one.drafts):
            with canvas.group(x(place + 1), y):
                kit.box(canvas, 0, 0, inner, 42, WORDS[word], _q(one, place, narrow))
        y = row(y + 54, _TARGET, "chance P of each")
        with canvas.group(0, y):
            state = "" if step >= _TARGET else "off"
            words = "one run, six tokens" if narrow else "the target: one run over six tokens"
            kit.box(canvas, x(0), 0, column * (BLOCK + 1) - 6, 26, words, "", "parameters", state)
        if step >= _TARGET:
            for place, word in enumerate(one.drafts):
                with canvas.group(x(place + 1) + inner / 2, y):
                    value = fixed(float(one.wanted[place][word]), 2)
                    canvas.text(0, 43, value if narrow else f"P {value}")
            with canvas.group(x(BLOCK + 1) + inner / 2, y):
                canvas.text(0, 43, "P₆", "k-muted")
        y = row(y + 60, _ACCEPT, "top word?" if one.greedy else "number < min(1, P/Q)?")
        for place in range(BLOCK):
            with canvas.group(x(place + 1), y):
                _verdict(canvas, one, place, inner, step >= _ACCEPT)
        y = row(y + (77 if narrow else 62), _MORE, "the words of this round")
        for place in range(BLOCK + 1):
            with canvas.group(x(place + 1), y):
                if step < _MORE or place > one.accepted:
                    canvas.rect(0, 0, inner, 42, "k-box k-box--off", 5)
                elif place < one.accepted:
                    kit.box(canvas, 0, 0, inner, 42, WORDS[one.drafts[place]], "stands", "selected")
                else:
                    note = (
                        "bonus" if place == BLOCK else "target" if one.greedy else "P − Q" if narrow else "from P − Q"
                    )
                    kit.box(canvas, 0, 0, inner, 42, WORDS[one.following], note, "selected", "selected")
        y = row(y + 54, _BACK, "state of the target")
        for place in range(BLOCK + 1):
            with canvas.group(x(place), y):
                if step < _BACK:
                    canvas.rect(0, 0, inner, 28, "k-box k-box--off", 5)
                else:
                    stays = place <= one.accepted
                    kit.box(
                        canvas,
                        0,
                        0,
                        inner,
                        28,
                        "kept" if stays else "gone" if narrow else "undone",
                        "",
                        "local" if stays else "error",
                    )
        y += 40
        canvas.height = y
        if step >= _MORE:
            canvas.height = _leftover(canvas, y + 6, one)
        return canvas

    raw = {
        "drafts": one.drafts,
        "limits": one.limits,
        "chances": one.chances,
        "accepted": one.accepted,
        "emitted": one.emitted,
        "left": one.left,
    }
    return draw(paint, "One round of drafting and verifying", _description(one, step), raw)


def _description(one: Round, step: int) -> str:
    words = "; ".join(
        f"{WORDS[word]}: Q {fixed(float(q[word]), 2)}" + (f", P {fixed(float(p[word]), 2)}" if step >= _TARGET else "")
        for word, q, p in zip(one.drafts, one.proposed, one.wanted, strict=False)
    )
    text = f"Known word {WORDS[one.first]} at position {START}. Drafts: {words}."
    if step >= _ACCEPT:
        text += f" {one.accepted} stand{'s' * (one.accepted == 1)}."
    if step >= _MORE:
        text += f" Then comes {WORDS[one.following]}."
    return text


def _q(one: Round, place: int, narrow: bool) -> str:
    value = fixed(float(one.proposed[place][one.drafts[place]]), 2)
    return value if narrow else f"Q {value}"


def _verdict(canvas: Canvas, one: Round, place: int, width: float, reached: bool) -> None:
    """The acceptance probability of a draft as a bar, the random number as a mark on it, and how it ended."""
    canvas.rect(0, 4, width, 14, "k-ground", 2)
    if not reached:
        return
    if place >= one.looked_at:
        canvas.text(width / 2, 33, "not", "k-muted", size=SMALL)
        canvas.text(width / 2, 46, "seen" if canvas.narrow else "looked at", "k-muted", size=SMALL)
        return
    stands = place < one.accepted
    limit = one.limits[place]
    canvas.rect(0, 4, width * min(1.0, max(0.0, limit)), 14, "k-hidden", 2)
    if place < len(one.chances):
        mark = width * one.chances[place]
        canvas.line(mark, 1, mark, 21, "k-level", 2.5)
        lines = [fixed(one.chances[place], 2), f"{'<' if stands else '≥'} {fixed(limit, 2)}"]
    else:
        lines = ["top"] if stands else ["top:", WORDS[int(np.argmax(one.wanted[place]))]]
    mark, verb = ("✓", " stands") if stands else ("✗", " falls")
    y = 34.0
    for words in lines if canvas.narrow else [" ".join(lines)]:
        canvas.text(width / 2, y, words, size=SMALL)
        y += 15
    ending = mark if canvas.narrow else mark + verb
    canvas.text(width / 2, y, ending, "k-selected" if stands else "k-error", size=SMALL)


def _leftover(canvas: Canvas, y: float, one: Round) -> float:
    """Where the last word of the round came from, word by word."""
    fell = one.accepted < BLOCK
    target = one.wanted[one.accepted]
    draft = one.proposed[one.accepted] if fell and not one.greedy else None
    narrow = canvas.narrow
    with canvas.group():
        if draft is not None:
            title, note = f"In place of draft {one.accepted + 1}", "from max(P − Q, 0), normalised"
        else:
            title = f"In place of draft {one.accepted + 1}" if fell else "Behind the block"
            note = "the target’s most likely word" if one.greedy else "drawn from P itself"
        y = kit.heading(canvas, 0, y, title, note)
        items = [("k-hidden", "P"), ("k-result", "drawn from")]
        y = kit.legend(canvas, [("k-box k-negative", "Q"), *items] if draft is not None else items, 0, y) + 18
    left = 0.0 if narrow else 146.0
    column, tall = (canvas.width - left) / len(WORDS), 78.0
    scale = tall / float(max(target.max(), one.left.max(), 0.0 if draft is None else draft.max()))
    for word, name in enumerate(WORDS):
        with canvas.group(left + column * word, y):
            shown = [("k-hidden", float(target[word])), ("k-result", float(one.left[word]))]
            if draft is not None:
                shown.insert(0, ("k-box k-negative", float(draft[word])))
            bar = min(20.0, (column - 12) / 3)
            start = (column - bar * len(shown)) / 2
            for place, (style, value) in enumerate(shown):
                canvas.rect(start + bar * place, tall - scale * value, bar - 2, scale * value, style, 1)
            if one.left[word] > 0:
                top = tall - scale * max(value for _, value in shown)
                canvas.text(column / 2, top - 5, fixed(float(one.left[word]), 2), "k-selected", size=SMALL)
            canvas.line(4, tall, column - 4, tall, "k-axis")
            canvas.text(column / 2, tall + 16, name, "k-text--strong" if word == one.following else "")
    return y + tall + 24
