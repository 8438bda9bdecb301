"""A small sentence splitter for English and for scripts with their own full stops.

It looks at one candidate at a time: an end mark, closing quotes, white space. A candidate is a boundary unless what
follows starts in lower case, or the word before a full stop is an abbreviation or an initial. It splits at white
space and drops nothing else, so the sentences joined again hold every character of the paragraph, in order.
"""

import re

# An end mark with closing quotes or brackets, then white space; or a CJK full stop, which needs no space.
# Only the first mark of a run is tried, and nothing is given back (++), so that a line of full stops takes linear time.
_CANDIDATE = re.compile(
    r"(?<![.!?\u2026\u203d\u0964\u061f])[.!?\u2026\u203d\u0964\u061f]++[\"'\u201d\u2019\u00bb)\]}*_]*+\s++"
    r"|[\u3002\uff01\uff1f]++[\u300d\u300f\u201d]*+\s*+"
)
_OPENERS = "\"'\u201c\u2018\u00ab([{*_\u2013\u2014-"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Lower case, without the last full stop. The first stand before names, the second before numbers.
_BEFORE_NAMES = _words(
    "mr mrs ms messrs mme mlle dr prof rev hon st ste fr gen col maj capt cmdr lt sgt cpl pvt adm gov sen rep pres "
    "supt insp vs v cf viz e.g i.e eg ie mt ft"
)
_BEFORE_NUMBERS = _words(
    "no nos vol vols ch chap fig figs eq eqs p pp sec art ca c approx est ed jan feb mar apr jun jul aug sep sept oct "
    "nov dec"
)
_ACRONYM = re.compile(r"(?:[A-Z]\.)+[A-Z]\Z")  # U.S, without its last full stop
# After an acronym only these open a sentence: "the U.S. Army" goes on, "in the U.S. The army" does not.
_STARTERS = _words(
    "The A An In On At By For From With As If When While After Before Since Although But And However This That These "
    "Those It He She They We I You His Her Its Their There Here Some Many Most Both Each One"
)
_LOOKBACK = 24  # characters; no abbreviation is longer
_LOOKAHEAD = 12  # characters; no starter is longer


def split_sentences(paragraph: str) -> list[str]:
    """The sentences of one paragraph, in order, none empty."""
    sentences = []
    start = 0
    for found in _CANDIDATE.finditer(paragraph):
        end = found.end()
        if end < len(paragraph) and _is_boundary(paragraph, found.start(), end):
            sentences.append(paragraph[start:end].strip())
            start = end
    sentences.append(paragraph[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _is_boundary(text: str, mark: int, after: int) -> bool:
    follows = text[after : after + _LOOKAHEAD].lstrip(_OPENERS)
    if follows[:1].islower():
        return False
    if text[mark] != "." or text.startswith("..", mark):
        return True
    words = text[max(0, mark - _LOOKBACK) : mark].split()
    return not (words and _goes_on(words[-1].lstrip(_OPENERS), follows))


def _goes_on(word: str, follows: str) -> bool:
    """Whether a full stop after this word belongs to the word, not to the sentence."""
    if len(word) == 1 and word.isupper():
        return word != "I"  # J. Smith; but "so do I." ends a sentence
    if _ACRONYM.match(word):
        return not _STARTERS.intersection(follows.split()[:1])
    folded = word.lower()
    return folded in _BEFORE_NAMES or (folded in _BEFORE_NUMBERS and follows[:1].isdigit())
