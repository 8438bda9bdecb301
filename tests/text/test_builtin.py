"""The text that needs no download."""

from sparsebert.text.builtin import python_docs


def test_the_built_in_text_is_prose_in_the_plain_layout() -> None:
    documents = [document.split("\n") for document in python_docs().decode().strip().split("\n\n")]
    paragraphs = [line for document in documents for line in document[1:]]
    assert len(documents) > 50
    assert sum(map(len, paragraphs)) > 150_000
    assert all(len(document) > 2 for document in documents)
    assert not any(">>>" in line or "::=" in line for line in paragraphs)


def test_no_long_paragraph_is_in_two_documents() -> None:
    lines = [line for line in python_docs().decode().split("\n") if len(line) > 100]
    assert len(lines) == len(set(lines))
