"""Text to token ids inside the TensorFlow graph: the same function in training and in serving.

Everything here is made of core TensorFlow operations, so that an exported model needs nothing
else to read raw strings. Tensors may have any shape; ragged results gain one dimension.
"""

import collections
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import tensorflow as tf

# A letter by its Unicode class, which no normalised text holds as such: it stands for an apostrophe
# inside a word while the others are split off as punctuation.
_INNER_APOSTROPHE = "\u02bc"
_PREFIXES, _SUFFIXES = (3, 5), (2, 3)
_WORD = r"\p{L}\p{M}\p{N}"


def normalise(text: tf.Tensor, lowercase: bool = True) -> tf.Tensor:
    """Repairs encoding, quotes and white space, and lower-cases.

    Invalid UTF-8 becomes U+FFFD; HTML line breaks, control characters and every kind of Unicode
    white space become one blank; typographic quotation marks become plain ones.

    Args:
        text: string tensor of any shape, UTF-8.
        lowercase: whether to lower-case, by Unicode's rules.

    Returns:
        A string tensor of the same shape, without white space at either end.
    """
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
    text = tf.strings.regex_replace(text, r"(?i)<br\s*/?>|[\p{Z}\p{Cc}]+", " ")
    text = tf.strings.regex_replace(plain_quotes(text), " +", " ")
    if lowercase:
        text = tf.strings.lower(text, encoding="utf-8")
    return tf.strings.strip(text)


def plain_quotes(text: tf.Tensor) -> tf.Tensor:
    """Makes typographic apostrophes and quotation marks plain ones; the shape stays."""
    text = tf.strings.regex_replace(text, "[\u2018\u2019\u201b\u02bc\uff07]", "'")
    return tf.strings.regex_replace(text, "[\u201c\u201d\u201e\u201f\u00ab\u00bb]", '"')


def words(text: tf.Tensor) -> tf.RaggedTensor:
    """Splits normalised text into words and punctuation marks.

    Contractions come apart where English grammar parts them, so that a negation is a token of its
    own: "isn't" gives `is`, `n't`; "it's" gives `it`, `'s`. Other apostrophes inside a word stay.
    Two or more full stops, and two or more hyphens, are one mark.

    Args:
        text: string tensor of shape `[...]`, normalised.

    Returns:
        A ragged string tensor of shape `[..., (tokens)]`.

    Example:
    >>> words(tf.constant("it isn't good...")).numpy().tolist()
    [b'it', b'is', b"n't", b'good', b'...']
    """
    inner = _INNER_APOSTROPHE
    replace = tf.strings.regex_replace
    text = replace(text, r"(?i)n't\b", f" n{inner}t ")
    text = replace(text, r"(?i)'(s|re|ve|ll|d|m)\b", rf" {inner}\1 ")
    text = replace(text, rf"([{_WORD}])'([{_WORD}])", rf"\1{inner}\2")
    text = replace(text, r"\.\.+|\x{2026}", " \u2026 ")
    text = replace(text, r"--+|[\x{2013}\x{2014}]", " \u2014 ")
    text = replace(text, rf"([^{_WORD}{inner}\s])", r" \1 ")
    text = replace(text, inner, "'")
    text = replace(text, "\u2026", "...")
    text = replace(text, "\u2014", "--")
    return tf.strings.split(text)


def characters(text: tf.Tensor) -> tf.RaggedTensor:
    """Splits text into Unicode characters, blanks included.

    Args:
        text: string tensor of shape `[...]`, valid UTF-8.

    Returns:
        A ragged string tensor of shape `[..., (characters)]`.
    """

    def written(codes):
        # `tf.strings.unicode_split` writes each anew, in most of its time.
        different, places = tf.unique(codes)
        return tf.gather(tf.strings.unicode_encode(different[:, tf.newaxis], "UTF-8"), places)

    return tf.ragged.map_flat_values(written, tf.strings.unicode_decode(text, "UTF-8"))


def with_affixes(words: tf.Tensor) -> tf.Tensor:
    """Puts beside each word its beginnings and endings, so that new words are not quite unknown.

    The beginnings are marked as in `^pre`, the endings as in `ing$`: no word looks like that. Of a
    short word they are the whole word.

    Args:
        words: string tensor of shape `[words]`.

    Returns:
        A string tensor of shape `[words, 5]`: the word, its first 3 and 5 characters, and its last
        2 and 3.

    Example:
    >>> with_affixes(tf.constant(["boring"])).numpy().tolist()
    [[b'boring', b'^bor', b'^borin', b'ng$', b'ing$']]
    """
    length = tf.strings.length(words, "UTF8_CHAR")
    beginnings = [
        "^"
        + tf.strings.substr(
            words, tf.zeros_like(length), tf.fill(tf.shape(length), size), "UTF8_CHAR"
        )
        for size in _PREFIXES
    ]
    endings = [
        tf.strings.substr(
            words, tf.maximum(length - size, 0), tf.fill(tf.shape(length), size), "UTF8_CHAR"
        )
        + "$"
        for size in _SUFFIXES
    ]
    return tf.stack([words, *beginnings, *endings], axis=-1)  # [words, 5]


def add_affixes(words: collections.Counter) -> collections.Counter:
    """Counts words together with their affixes, as `with_affixes` marks them."""
    counts = collections.Counter(words)
    for word, count in words.items():
        for size in _PREFIXES:
            counts["^" + word[:size]] += count
        for size in _SUFFIXES:
            counts[word[-size:] + "$"] += count
    return counts


TOKENISERS: dict[str, Callable[[tf.Tensor], tf.RaggedTensor]] = {
    "words": words,
    "characters": characters,
}


class Vocabulary(tf.Module):
    """The tokens that a model knows, and their ids.

    Id 0 is padding, id 1 every token that is not known, the others follow by frequency.

    Args:
        tokens: the tokens in the order of their ids, without the two special ones.
        file: the file that holds them, as `content` gives it; where it is given, the lookup reads
            that file and an exported model carries it as an asset.

    Example:
    >>> vocabulary = Vocabulary(["the", "film"])
    >>> vocabulary.ids(tf.constant(["the", "best", "film"])).numpy()
    array([2, 1, 3], dtype=int32)
    """

    PADDING, UNKNOWN = "<pad>", "<unk>"

    def __init__(self, tokens: Iterable[str], file: Path | None = None):
        super().__init__()
        self.tokens = (self.PADDING, self.UNKNOWN, *tokens)
        self.table, self._to_token = lookup_tables(self.tokens, file, (1, self.UNKNOWN))

    @classmethod
    def learn(cls, counts: Mapping[str, int], size: int, min_count: int = 1) -> "Vocabulary":
        """Takes the `size` most frequent tokens (special ones included) seen `min_count` times.

        Equally frequent tokens are in alphabetical order, so that the same counts always give the
        same ids.
        """
        special = (cls.PADDING, cls.UNKNOWN)
        frequent = (t for t, count in counts.items() if count >= min_count and t not in special)
        by_frequency = sorted(frequent, key=lambda token: (-counts[token], token))
        return cls(by_frequency[: max(size - 2, 0)])

    @classmethod
    def load(cls, file: Path) -> "Vocabulary":
        """Reads a file of `content`."""
        return cls(lines_of(file.read_bytes())[2:], file)

    def content(self) -> bytes:
        """Returns one token a line, special ones first, so that the line number is the id."""
        return as_lines(self.tokens)

    def __len__(self) -> int:
        return len(self.tokens)

    def ids(self, tokens: tf.Tensor | tf.RaggedTensor) -> tf.Tensor | tf.RaggedTensor:
        """Looks up the int32 ids of string tokens, in their own (possibly ragged) shape.

        None of them is padding: a token that is written like it is unknown.
        """

        def of(flat):
            return tf.maximum(tf.cast(self.table.lookup(flat), tf.int32), 1)

        return tf.ragged.map_flat_values(of, tokens)

    def tokens_of(self, ids: tf.Tensor) -> tf.Tensor:
        """Looks up the string tokens of integer ids, in their shape."""
        return self._to_token.lookup(tf.cast(ids, tf.int64))


def lookup_tables(
    strings: Sequence[str],
    file: Path | None,
    otherwise: tuple[int, str],
    column: int = tf.lookup.TextFileIndex.WHOLE_LINE,
) -> tuple[tf.lookup.StaticHashTable, tf.lookup.StaticHashTable]:
    """Makes the tables from strings to their ids, which count from 0, and back.

    Args:
        strings: the strings in the order of their ids.
        file: the file that holds them, one a line, for the tables to read; None for none.
        otherwise: the id of any other string, and the string of any other id.
        column: which column of the file holds them, where tabs part it. Default: the whole line.

    Returns:
        The table of int64 ids by string, and that of strings by id.
    """
    if file is None:
        ids, given = tf.range(len(strings), dtype=tf.int64), tf.constant(strings)
        to_id = tf.lookup.KeyValueTensorInitializer(given, ids)
        to_string = tf.lookup.KeyValueTensorInitializer(ids, given)
    else:
        number, read = tf.lookup.TextFileIndex.LINE_NUMBER, tf.lookup.TextFileInitializer
        to_id = read(str(file), tf.string, column, tf.int64, number)
        to_string = read(str(file), tf.int64, number, tf.string, column)
    no_id, no_string = otherwise
    return (
        tf.lookup.StaticHashTable(to_id, no_id),
        tf.lookup.StaticHashTable(to_string, no_string),
    )


def count_tokens(
    batch: tf.RaggedTensor, tokens: collections.Counter, lengths: collections.Counter
) -> None:
    """Adds a batch of tokenised texts to counts of tokens and of texts by their length.

    Args:
        batch: ragged string tensor of shape `[batch, (tokens)]`.
        tokens: counts by token, as `str`.
        lengths: counts by number of tokens.
    """
    values, _, counts = tf.unique_with_counts(batch.flat_values)
    for token, count in zip(values.numpy(), counts.numpy().tolist(), strict=True):
        tokens[token.decode()] += count
    lengths.update(batch.row_lengths().numpy().tolist())


def as_lines(strings: Iterable[str]) -> bytes:
    """Writes one string a line; a string may hold anything but a line feed."""
    return "".join(f"{string}\n" for string in strings).encode()


def lines_of(content: bytes) -> list[str]:
    """Reads what `as_lines` wrote."""
    return content.decode().split("\n")[:-1]
