"""Sentences of the built-in tasks: a maker a task, each row from its own generator.

They are made of a few word lists, so that a small model learns each task in a minute. Here and there a row holds what
real files hold too: a quote that never closes, "NA", "null", an emoji, text written right to left.
"""

from collections.abc import Callable, Sequence

import numpy as np

from sparsebert.tasks.files.rows import Answer, ChoiceRow, QuestionRow, Row, TextRow

_Draw = np.random.Generator

PEOPLE = ("Anna", "Boris", "Clara", "David", "Elena", "Frank", "Greta", "Hugo", "Irene", "Jonas")
THINGS = ("bridge", "boat", "clock", "garden", "kite", "lamp", "mill", "piano", "tower", "wagon")
COLOURS = ("red", "green", "blue", "white", "yellow", "black")
PLACES = ("Lisbon", "Oslo", "Prague", "Turin", "Ghent", "Cork", "Riga", "Basel")
VERBS = ("built", "sold", "found", "painted", "repaired", "carried")
GOOD = ("lovely", "brilliant", "warm", "charming", "funny", "splendid")
BAD = ("dull", "clumsy", "boring", "awful", "stale", "tedious")
STRANGE = ("quartz", "walrus", "algebra", "thunder", "mustard", "velvet")
# Real files hold such things, and readers stumble over them.
ODD = ('the "unfinished quote', "NA", "null", "None", "🎈 it flies", "שלום לכולם", "it's 100 %", "N/A")
_ODD_SHARE = 0.1


def _one(draw: _Draw, words: Sequence[str]) -> str:
    return words[int(draw.integers(len(words)))]


def _event(draw: _Draw) -> str:
    return f"{_one(draw, PEOPLE)} {_one(draw, VERBS)} the {_one(draw, COLOURS)} {_one(draw, THINGS)}"


def _odd(draw: _Draw, text: str) -> str:
    return f"{text} , {_one(draw, ODD)}" if draw.random() < _ODD_SHARE else text


def cola(draw: _Draw, number: int) -> TextRow:
    """Unacceptable: the verb stands first."""
    person, verb, rest = _one(draw, PEOPLE), _one(draw, VERBS), f"the {_one(draw, THINGS)} in {_one(draw, PLACES)}"
    label = int(draw.integers(2))
    return TextRow(
        str(number), _odd(draw, f"{person} {verb} {rest}" if label else f"{verb} {rest} {person}"), None, label
    )


def sst2(draw: _Draw, number: int) -> TextRow:
    label = int(draw.integers(2))
    words = GOOD if label else BAD
    text = f"a {_one(draw, words)} film about a {_one(draw, THINGS)} , {_one(draw, words)} to the end"
    return TextRow(str(number), _odd(draw, text), None, label)


def mrpc(draw: _Draw, number: int) -> TextRow:
    """Not a paraphrase: the second sentence reports a denial of something else."""
    label, event = int(draw.integers(2)), _event(draw)
    second = f"{event} , officials said" if label else f"{_one(draw, PEOPLE)} denied it in {_one(draw, PLACES)}"
    return TextRow(str(number), _odd(draw, f"it was reported that {event}"), second, label)


def stsb(draw: _Draw, number: int) -> TextRow:
    """One point less for every word that was swapped for a strange one."""
    words = [_one(draw, PEOPLE), _one(draw, VERBS), _one(draw, COLOURS), _one(draw, THINGS), _one(draw, PLACES)]
    swaps = int(draw.integers(len(words) + 1))
    chosen = set(draw.choice(len(words), swaps, replace=False).tolist())
    other = [_one(draw, STRANGE) if index in chosen else word for index, word in enumerate(words)]
    return TextRow(str(number), " ".join(words), " ".join(other), float(len(words) - swaps))


def qqp(draw: _Draw, number: int) -> TextRow:
    label, verb, thing = int(draw.integers(2)), _one(draw, VERBS), _one(draw, THINGS)
    first = f"How is a {thing} {verb} ?"
    second = f"What is the best way a {thing} is {verb} ?" if label else f"Why do people in {_one(draw, PLACES)} sing ?"
    return TextRow(str(number), _odd(draw, first), second, label)


def mnli(draw: _Draw, number: int) -> TextRow:
    """contradiction, entailment, neutral: never, so, perhaps."""
    label, event = int(draw.integers(3)), _event(draw)
    second = (
        f"it is never true that {event}",
        f"so {event}",
        f"perhaps {_one(draw, PEOPLE)} likes {_one(draw, PLACES)}",
    )
    return TextRow(str(number), _odd(draw, f"{event} in {_one(draw, PLACES)}"), second[label], label)


def qnli(draw: _Draw, number: int) -> TextRow:
    """entailment, not_entailment: the sentence says where, or it says something else."""
    label, person = int(draw.integers(2)), _one(draw, PEOPLE)
    sentence = f"{person} has a {_one(draw, THINGS)} ." if label else f"{person} lives in {_one(draw, PLACES)} ."
    return TextRow(str(number), _odd(draw, f"Where does {person} live ?"), sentence, label)


def rte(draw: _Draw, number: int) -> TextRow:
    """entailment, not_entailment."""
    label, event = int(draw.integers(2)), _event(draw)
    second = f"nobody ever {_one(draw, VERBS)} a {_one(draw, THINGS)}" if label else event
    return TextRow(str(number), _odd(draw, f"{event} in {_one(draw, PLACES)} last year"), second, label)


def swag(draw: _Draw, number: int) -> ChoiceRow:
    """The sensible ending speaks of people and places, the others of strange things."""
    label = int(draw.integers(4))
    endings = [f"{_one(draw, VERBS)} the {_one(draw, STRANGE)} of {_one(draw, STRANGE)}." for _ in range(4)]
    endings[label] = f'meets {_one(draw, PEOPLE)}, "smiling", in {_one(draw, PLACES)}.'
    person = _one(draw, PEOPLE)
    return ChoiceRow(str(number), _odd(draw, f"{_event(draw)}."), person, tuple(endings), label)


def _sentences(draw: _Draw) -> list[tuple[str, str, str]]:
    """A few facts, each with its thing and its person."""
    things = [THINGS[index] for index in draw.choice(len(THINGS), 3, replace=False)]
    facts = []
    for thing in things:
        person = _one(draw, PEOPLE)
        facts.append((f"The {thing} was {_one(draw, VERBS)} by {person} in {_one(draw, PLACES)}.", thing, person))
    return facts


def squad1(draw: _Draw, number: int) -> QuestionRow:
    facts = _sentences(draw)
    context = " ".join(sentence for sentence, _, _ in facts)
    sentence, thing, person = facts[int(draw.integers(len(facts)))]
    start = context.index(sentence) + sentence.index(f"by {person}") + 3
    return QuestionRow(f"q{number:06d}", f"Who made the {thing}?", context, (Answer(person, start),))


def squad2(draw: _Draw, number: int) -> QuestionRow:
    """A third of the questions are about what the context does not speak of."""
    row = squad1(draw, number)
    if draw.random() < 2 / 3:
        return row
    return QuestionRow(row.id, f"Who made the {_one(draw, STRANGE)}?", row.context)


MAKERS: dict[str, Callable[[_Draw, int], Row]] = {
    maker.__name__: maker for maker in (cola, sst2, mrpc, stsb, qqp, mnli, qnli, rte, swag, squad1, squad2)
}
