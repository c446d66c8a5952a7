r"""What a tagger reads of a word: the key to look it up by, its casing and its spelling.

Everything is made of core TensorFlow operations. A token may be any string; where it is not valid
UTF-8, it reads as if U+FFFD stood there.
"""

import enum

import tensorflow as tf

from rnnapps.data.text import plain_quotes


class Casing(enum.IntEnum):
    """How a token is written, judged by its letters and digits (Unicode L and N) alone."""

    PADDING = 0  # the empty token
    LOWER = 1  # a small letter and no capitals: house, n't, e.g.
    INITIAL_CAPITAL = 2  # one capital, before other letters: London, Ph., X-ray
    CAPITALS = 3  # capitals only, two or more: EU, U.N., AT&T
    SINGLE_CAPITAL = 4  # one letter, a capital: I, J.
    MIXED_CAPITALS = 5  # capitals among other letters in any other way: McDonald, Anglo-Irish
    NUMBER = 6  # digits only: 12, 1,234.5, 1996-08-22
    WITH_DIGITS = 7  # letters and digits: F-16, 1990s
    SYMBOL = 8  # neither: ..., (, $
    CASELESS = 9  # only letters without case: Han, Arabic, Thai


def fold(
    tokens: tf.Tensor | tf.RaggedTensor, lowercase: bool = True, digits: bool = True
) -> tf.Tensor | tf.RaggedTensor:
    r"""Gives the key by which a word is looked up.

    Args:
        tokens: string tensor of any shape, or ragged.
        lowercase: whether to lower-case, by Unicode's rules. Defaults to True.
        digits: whether every decimal digit becomes 0. Defaults to True.

    Returns:
        Strings of valid UTF-8 with plain quotation marks and without NULs, each of which becomes
        U+FFFD, in the shape of `tokens`.

    Example:
    >>> fold(tf.constant(["1996-08-22", "U.S.", "N\u2019T"])).numpy().tolist()
    [b'0000-00-00', b'u.s.', b"n't"]
    """

    def folded(flat):
        # `tf.strings.lower` drops what stands behind a NUL.
        flat = plain_quotes(tf.strings.regex_replace(_valid(flat), r"\x00", "\ufffd"))
        if digits:
            flat = tf.strings.regex_replace(flat, r"\p{Nd}", "0")
        return tf.strings.lower(flat, encoding="utf-8") if lowercase else flat

    return tf.ragged.map_flat_values(folded, tokens)


def casing_ids(tokens: tf.Tensor | tf.RaggedTensor) -> tf.Tensor | tf.RaggedTensor:
    """Says how each token is written.

    Args:
        tokens: string tensor of any shape, or ragged.

    Returns:
        `Casing`, int32, in the shape of `tokens`.

    Example:
    >>> [Casing(i).name for i in casing_ids(tf.constant(["EU", "McDonald", "1,234.5"])).numpy()]
    ['CAPITALS', 'MIXED_CAPITALS', 'NUMBER']
    """
    capital, other = r"[\p{Lu}\p{Lt}]", r"[^\p{Lu}\p{Lt}]"
    patterns = {
        Casing.SYMBOL: "",
        Casing.NUMBER: r"\p{N}+",
        Casing.WITH_DIGITS: r".*\p{N}.*",
        Casing.LOWER: rf"{other}*\p{{Ll}}{other}*",
        Casing.INITIAL_CAPITAL: f"{capital}{other}+",
        Casing.SINGLE_CAPITAL: capital,
        Casing.CAPITALS: f"{capital}+",
        Casing.CASELESS: f"{other}+",
    }

    def ids(flat):
        essence = tf.strings.regex_replace(_valid(flat), r"[^\p{L}\p{N}]+", "")
        found = tf.fill(tf.shape(flat), int(Casing.MIXED_CAPITALS))
        for casing, pattern in reversed(patterns.items()):
            matches = tf.strings.regex_full_match(essence, pattern)
            found = tf.where(matches, int(casing), found)
        return tf.where(flat == "", int(Casing.PADDING), found)

    return tf.ragged.map_flat_values(ids, tokens)


def spellings(tokens: tf.Tensor, length: int) -> tf.Tensor:
    """Splits tokens into Unicode characters.

    Args:
        tokens: string tensor `[tokens]`.
        length: how many characters of a token are given. Of a longer one they are the first half
            and the last; the first has one more where `length` is odd.

    Returns:
        One character a string, behind the last of them `""`: `[tokens, length]`.

    Example:
    >>> spellings(tf.constant(["is", "reappearance"]), 5).numpy().tolist()
    [[b'i', b's', b'', b'', b''], [b'r', b'e', b'a', b'c', b'e']]
    """
    characters = tf.strings.unicode_split(tokens, "UTF-8")  # [tokens, (characters)]
    sizes = tf.cast(characters.row_lengths(), tf.int32)[:, None]  # [tokens, 1]
    first = tf.cast(characters.row_starts(), tf.int32)[:, None]  # [tokens, 1]
    position = tf.range(length)  # [length]
    left_out = tf.maximum(sizes - length, 0)  # [tokens, 1]
    taken = tf.where(position < (length + 1) // 2, position, position + left_out)
    # The last value is what stands where a token has no more characters.
    values = tf.concat([characters.flat_values, [""]], 0)
    index = tf.where(position < sizes, first + taken, tf.size(values) - 1)
    return tf.gather(values, index)  # [tokens, length]


def _valid(tokens: tf.Tensor) -> tf.Tensor:
    return tf.strings.unicode_transcode(tokens, "UTF-8", "UTF-8", errors="replace")
