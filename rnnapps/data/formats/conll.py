"""Tagged sentences in columns, as of the CoNLL shared tasks: a token a line, a blank line between.

Besides sentences a file may hold

- `-DOCSTART-` lines, which begin a document: each is left out, and ends a sentence;
- comments: lines that begin with `#` and are cut into other columns than the file's first token
  line. `#` and `#hashtag` in as many columns as other tokens are tokens, and a lone `#hashtag`
  within a sentence is a token that lacks its tag.
"""

import functools
import itertools
import os
from collections.abc import Iterator

from rnnapps.data.formats.rows import BadRow, Row, listed, read_text_lines, require_file
from rnnapps.data.formats.tabular import column_position, columns_held
from rnnapps.data.tagged import AUTO, Sentence, tagged_rows
from rnnapps.errors import UserError

DOCUMENT_START = "-DOCSTART-"
LONGEST_SENTENCE = 10_000


def read_conll(
    path: str | os.PathLike,
    token_column: int | str = 0,
    tag_column: int | str = -1,
    scheme: str = AUTO,
) -> Iterator[Row]:
    r"""Streams tagged sentences of a CoNLL file; their tags come out as IOB2.

    A line with a tab is cut at tabs, so that its columns may hold blanks; another at runs of
    blanks. Lines of white space only, of whatever kind, end sentences.

    Args:
        path: The file, also `.gz`, or a comma-separated list of files.
        token_column: The index of the column that holds the token; negative from the last.
        tag_column: The same for the tag; or its name, where the file's first line is a header.
        scheme: `"iob1"`, `"iob2"`, `"iobes"` or `"none"` (tags such as parts of speech), or
            `"auto"`: each file is read once before, to find its scheme.

    Yields:
        A sentence, its tokens and tags one a line, with the scheme that the file had:
        `{"tokens": "EU\nsleeps", "tags": "B-ORG\nO", "scheme": "iob1"}`. Or a `BadRow` for a
        sentence with a line that lacks columns, a token or a tag, that is not UTF-8, or whose tag
        the scheme does not have there; and for one of more than 10,000 tokens.

    Raises:
        UserError: A file is missing, damaged, without sentences, or lacks the named column; it
            mixes IOB1 and IOB2; the scheme is not known.
    """
    paths = listed(os.fspath(path))
    token_column, tag_column = map(_number_or_name, (token_column, tag_column))
    if tag_column == token_column:
        raise UserError(
            "tokens and tags must be in different columns. "
            f"Received: token_column={token_column}, tag_column={tag_column}"
        )
    for path in paths:
        require_file(path)
        if os.path.isdir(path):
            raise UserError(f"{path} is a folder without train and one of dev and test: name files")
    return itertools.chain.from_iterable(
        [
            tagged_rows(functools.partial(_sentences, path, token_column, tag_column), scheme)
            for path in paths
        ]
    )


def _sentences(path, token_column, tag_column) -> Iterator[Sentence | BadRow]:
    num_headers = int(isinstance(token_column, str) or isinstance(tag_column, str))
    token_column, tag_column = (
        _named_column(path, column) if isinstance(column, str) else column
        for column in (token_column, tag_column)
    )
    needed = max(2, *(index + 1 if index >= 0 else -index for index in (token_column, tag_column)))
    layout = _layout(path, num_headers)
    lines, tokens, tags, bad = [], [], [], None
    is_empty, has_sentences = True, False
    for line, text, reason in itertools.chain(_body(path, num_headers), [(0, "", None)]):
        is_empty = is_empty and line == 0
        if not text.strip() or text.startswith(DOCUMENT_START):
            if bad or tokens:
                has_sentences = True
                yield bad or Sentence(path, lines, tokens, tags)
            lines, tokens, tags, bad = [], [], [], None
            continue
        if bad:
            continue
        columns = _columns(text)
        if text.startswith("#") and _layout_of(text, columns) != layout:
            if not tokens or len(text.split()) > 1:
                continue
        if not reason and len(columns) < needed:
            reason = f"{columns_held(columns)} where {needed} are needed"
        if not reason:
            token, tag = columns[token_column].strip(), columns[tag_column].strip()
            reason = None if token and tag else f"an empty {'tag' if token else 'token'}"
        if reason:
            bad = BadRow(path, line, reason)
        elif len(tokens) == LONGEST_SENTENCE:
            reason = f"more than {LONGEST_SENTENCE:,} tokens: no blank line between sentences?"
            bad = BadRow(path, lines[0], reason)
        else:
            lines.append(line)
            tokens.append(token)
            tags.append(tag)
    if not has_sentences:
        raise UserError(f"{path} {'is empty' if is_empty else 'holds no sentences'}")


def _number_or_name(column):
    try:
        return int(column)
    except ValueError:
        return column


def _body(path, num_headers):
    return itertools.islice(read_text_lines(path), num_headers, None)


def _named_column(path, name):
    line, text, reason = next(read_text_lines(path), (0, "", None))
    if line == 0:
        raise UserError(f"{path} is empty")
    if reason:
        raise UserError(str(BadRow(path, 1, reason)))
    return column_position(path, name, [column.strip() for column in _columns(text)])


def _layout(path, num_headers):
    """How the file's first token line that begins with something else than `#` is cut."""
    for _, text, _ in _body(path, num_headers):
        if not text.startswith(("#", DOCUMENT_START)):
            columns = _columns(text)
            if len(columns) > 1:
                return _layout_of(text, columns)
    return None


def _layout_of(text, columns):
    return "\t" in text, len(columns)


def _columns(text):
    return text.split("\t") if "\t" in text else [column for column in text.split(" ") if column]
