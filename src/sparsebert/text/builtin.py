"""Text that comes with Python itself: the prose of the standard library's language reference."""

import re

NAMES = ("python-docs",)

_UNDERLINE = re.compile(r"([*=\-~^\"'#.])\1{2,}\Z")
_MIN_WORDS = 6  # shorter lines are signatures, labels and table cells, not prose
_MIN_LETTERS = 0.78  # share of letters and spaces; grammar rules and code have less
_MIN_DOCUMENT_CHARACTERS = 700  # a section shorter than this stays with the one before it


def python_docs() -> bytes:
    """`pydoc_data.topics` in the plain layout: title line, a paragraph a line, blank line between documents.

    Topics repeat one another (`if` is also inside `compound`), so a paragraph is kept where it appears first:
    otherwise the held-out documents would be found again, word for word, in the training ones.
    """
    from pydoc_data.topics import topics

    documents: list[list[str]] = []
    seen: set[str] = set()
    for _, topic in sorted(topics.items()):
        document: list[str] = []
        for title, paragraphs in _sections(topic):
            fresh = [paragraph for paragraph in paragraphs if paragraph not in seen]
            seen.update(fresh)
            if sum(map(len, document)) >= _MIN_DOCUMENT_CHARACTERS:
                documents.append(document)
                document = []
            document += [title, *fresh] if fresh else []
        documents.append(document)
    whole = [document for document in documents if len(document) > 2]
    return ("\n\n".join("\n".join(document) for document in whole) + "\n").encode()


def _sections(topic: str) -> list[tuple[str, list[str]]]:
    """(title, paragraphs) of each underlined heading, in order."""
    sections: list[tuple[str, list[str]]] = []
    for block in re.split(r"\n\s*\n", topic.strip("\n")):
        lines = [line.strip() for line in block.split("\n")]
        if len(lines) == 2 and _UNDERLINE.match(lines[1]):
            sections.append((lines[0].replace('"', ""), []))
        elif sections:
            sections[-1][1].extend(_prose(lines))
    return sections


def _prose(lines: list[str]) -> list[str]:
    """The block as one line if it reads as English, else nothing."""
    text = re.sub(r"^(?:\* |\d+\. |\[\d+\] |\(\d+\) )", "", " ".join(" ".join(lines).split()))
    letters = sum(character.isalpha() or character == " " for character in text)
    reads = (
        len(text.split()) >= _MIN_WORDS
        and letters >= _MIN_LETTERS * len(text)
        and text[-1] in '.:!?)”"'
        and not any(mark in text for mark in ("::=", ">>>", "+--", "| ", " = ", "def ", "return "))
    )
    return [text] if reads else []
