"""Text to token ids and back, so that a model can write text as well as read it.

Tokens carry their own spacing: a blank becomes a mark, U+2581, at the beginning of the token
behind it, as in SentencePiece (Kudo and Richardson 2018, https://aclanthology.org/D18-2012). Tokens
joined, with each mark a blank again, are thus the text. Everything is made of core TensorFlow
operations.
"""

import collections
from collections.abc import Callable, Iterable
from pathlib import Path

import tensorflow as tf

from rnnapps.data.text import Vocabulary, count_tokens, lines_of

BLANK = "\u2581"

_WORD = r"[\p{L}\p{M}\p{N}]"
_APOSTROPHE = "['\u2019]"
# Their words have no blanks between them.
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
# A line feed stands behind an apostrophe inside a word. The parts are a word that is contracted
# with the next, that contraction before the line feed and behind it, and any other token.
_TOKEN = (
    rf"({BLANK}?{_WORD}+?)?"
    rf"(?i:(n{_APOSTROPHE})\n(t)\b|({_APOSTROPHE})\n((?:s|re|ve|ll|d|m)\b))"
    rf"|({BLANK}?(?:{_WORD}+(?:{_APOSTROPHE}\n)?|.\p{{M}}*))"
)


def labels(pieces: Iterable[str]) -> list[str]:
    """Returns what a picture shows at each piece of a text: it without its blank, or that it ends.

    Example:
    >>> labels(["\u2581a", "b", "\u2581", ""])
    ['a', 'b', '\u2581', '(end)']
    """
    return [piece.strip(BLANK) or piece or "(end)" for piece in pieces]


def normalise(text: tf.Tensor, lowercase: bool = False) -> tf.Tensor:
    r"""Repairs encoding and white space; quotation marks and all other characters stay.

    Invalid UTF-8 becomes U+FFFD; control characters and every kind of Unicode white space become
    one blank; the mark of a blank, U+2581, becomes `_`.

    Args:
        text: string tensor of any shape, UTF-8.
        lowercase: whether to lower-case, by Unicode's rules. Defaults to False.

    Returns:
        A string tensor of the same shape, without white space at either end.

    Example:
    >>> normalise(tf.constant(["\tOne \u2028 two_\u2581", ""])).numpy().tolist()
    [b'One two__', b'']
    """
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
    text = tf.strings.regex_replace(text, r"[\p{Z}\p{Cc}]+", " ")
    text = tf.strings.regex_replace(text, BLANK, "_")
    if lowercase:
        text = tf.strings.lower(text, encoding="utf-8")
    return tf.strings.strip(text)


def words(text: tf.Tensor) -> tf.RaggedTensor:
    r"""Splits normalised text into words and punctuation marks, with the mark of the blank before.

    A word is a run of letters, digits and combining marks. At an apostrophe it comes apart: where
    English has a contraction, before it (`is`, `n't`; `it`, `'s`), elsewhere behind the apostrophe,
    as of an article in French or Italian (`l'`, `amico`). Every other character is a token with its
    combining marks, and so are those of scripts without blanks: Han, Kana, Thai, Lao, Khmer and
    Burmese.

    Args:
        text: string tensor `[batch]`, normalised.

    Returns:
        A ragged string tensor `[batch, (tokens)]`.

    Example:
    >>> [t.decode() for t in words(tf.constant(["L'amico isn't\u6771\u4eac!"])).flat_values.numpy()]
    ["▁L'", 'amico', '▁is', "n't", '東', '京', '!']
    """
    replace = tf.strings.regex_replace
    text = replace(replace(text, "^.", rf"{BLANK}\0"), " ", BLANK)
    # One pass leaves out an apostrophe that stands one letter behind another.
    for _ in range(2):
        text = replace(text, rf"({_WORD}{_APOSTROPHE})(\p{{L}})", "\\1\n\\2")
    text = replace(text, rf"{BLANK}?{_UNSPACED}\p{{M}}*", r" \0 ")
    return tf.strings.split(replace(text, _TOKEN, r"\1 \2\3\4\5 \6 "))


def characters(text: tf.Tensor) -> tf.RaggedTensor:
    """Splits normalised text into Unicode characters, each blank as its mark.

    Args:
        text: string tensor `[batch]`, normalised.

    Returns:
        A ragged string tensor `[batch, (characters)]`.
    """
    return tf.strings.unicode_split(tf.strings.regex_replace(text, " ", BLANK), "UTF-8")


class Segmentation(tf.Module):
    """A way to write texts as token ids, and the tokens that it knows.

    `END` stands behind a text that is written, and before its first token.

    Args:
        lowercase: whether texts are lower-cased first. Defaults to False.
    """

    PADDING, UNKNOWN, END = 0, 1, 2
    SPECIAL = ("<pad>", "<unk>", "<end>")

    def __init__(self, lowercase: bool = False):
        super().__init__()
        self.lowercase = lowercase

    @classmethod
    def learn(
        cls, texts: Iterable[tf.Tensor], size: int, min_count: int = 1, lowercase: bool = False
    ) -> "Segmentation":
        """Chooses tokens by the texts that they shall write; the same texts give the same tokens.

        Args:
            texts: string tensors `[batch]`, such as a batched `tf.data.Dataset`; read once.
            size: the greatest number of ids, special ones included.
            min_count: how often a token must be seen, or, of subwords, each of its characters.
                Defaults to 1.
            lowercase: whether texts are lower-cased first. Defaults to False.
        """
        raise NotImplementedError

    @classmethod
    def load(cls, file: Path, lowercase: bool = False) -> "Segmentation":
        """Reads a file of `content`; an exported model carries it as an asset."""
        raise NotImplementedError

    def content(self) -> bytes:
        """Returns one token a line, so that the line number is the id."""
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def normalise(self, text: tf.Tensor) -> tf.Tensor:
        """Gives a text as its tokens can tell it, in its shape."""
        return normalise(text, self.lowercase)

    def ids(self, text: tf.Tensor | tf.RaggedTensor) -> tf.Tensor | tf.RaggedTensor:
        """Writes texts as token ids, without an `END`.

        Args:
            text: string tensor `[...]`, dense or ragged; any bytes.

        Returns:
            int32 ids, ragged `[..., (tokens)]`; of a scalar, `[tokens]`.
        """
        return self._each(self._ids, text)

    def pieces(self, text: tf.Tensor | tf.RaggedTensor) -> tf.Tensor | tf.RaggedTensor:
        """Gives the tokens that `ids` stand for, in their shape, with the marks of blanks."""
        return self._each(self._pieces, text)

    def texts(
        self, ids: tf.Tensor | tf.RaggedTensor, replacements: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Writes token ids as text.

        Args:
            ids: integer tensor `[..., tokens]`, dense or ragged.
            replacements: string tensor of the shape of dense ids: the token that stands where one
                is `UNKNOWN`. Defaults to None, U+FFFD.

        Returns:
            Normalised strings `[...]`. `PADDING` and `END` vanish.
        """
        with tf.device("CPU:0"):
            if isinstance(ids, tf.RaggedTensor):
                ids = ids.to_tensor(self.PADDING)
            ids = tf.convert_to_tensor(ids)
            strings = self._strings(ids)  # [..., tokens]
            if replacements is not None:
                strings = tf.where(ids == self.UNKNOWN, replacements, strings)
            is_silent = (ids == self.PADDING) | (ids == self.END)
            joined = tf.strings.reduce_join(tf.where(is_silent, "", strings), axis=-1)  # [...]
            return normalise(tf.strings.regex_replace(joined, BLANK, " "))

    def _each(
        self, split: Callable, text: tf.Tensor | tf.RaggedTensor
    ) -> tf.Tensor | tf.RaggedTensor:
        """Splits texts of any shape with a function of normalised texts `[batch]`."""
        # Strings live on the CPU, and so does what is made of them here.
        with tf.device("CPU:0"):
            if not isinstance(text, tf.RaggedTensor):
                text = tf.convert_to_tensor(text, tf.string)
                if text.shape.rank == 0:
                    return split(self.normalise(text[None])).flat_values  # [tokens]
                if text.shape.rank > 1:
                    text = tf.RaggedTensor.from_tensor(text, ragged_rank=text.shape.rank - 1)
            return tf.ragged.map_flat_values(lambda flat: split(self.normalise(flat)), text)

    def _ids(self, text: tf.Tensor) -> tf.RaggedTensor:
        """The ids of normalised texts `[batch]`."""
        raise NotImplementedError

    def _pieces(self, text: tf.Tensor) -> tf.RaggedTensor:
        """The tokens of normalised texts `[batch]`."""
        raise NotImplementedError

    def _strings(self, ids: tf.Tensor) -> tf.Tensor:
        """The bytes that ids stand for, in their shape."""
        raise NotImplementedError


class _Listed(Segmentation):
    """Splits texts by rule, and knows the most frequent tokens.

    Args:
        tokens: the tokens in the order of their ids, without the special ones.
        file: the file that holds them, as `content` gives it.
        lowercase: whether texts are lower-cased first. Defaults to False.
    """

    _split: Callable
    _unknown: str

    def __init__(self, tokens: Iterable[str], file: Path | None = None, lowercase: bool = False):
        super().__init__(lowercase)
        self._vocabulary = Vocabulary([self.SPECIAL[self.END], *tokens], file)

    @classmethod
    def learn(cls, texts, size, min_count=1, lowercase=False):
        counts, lengths = collections.Counter(), collections.Counter()
        for batch in texts:
            count_tokens(cls._split(normalise(batch, lowercase)), counts, lengths)
        # Its two special tokens are the first of the three here.
        known = Vocabulary.learn(counts, size - 1, min_count).tokens[2:]
        return cls(known, lowercase=lowercase)

    @classmethod
    def load(cls, file, lowercase=False):
        return cls(lines_of(file.read_bytes())[len(cls.SPECIAL) :], file, lowercase)

    def content(self):
        return self._vocabulary.content()

    def __len__(self):
        return len(self._vocabulary)

    def _ids(self, text):
        return self._vocabulary.ids(self._split(text))

    def _pieces(self, text):
        return self._split(text)

    def _strings(self, ids):
        return tf.where(ids == self.UNKNOWN, self._unknown, self._vocabulary.tokens_of(ids))


class Words(_Listed):
    """Texts as words and punctuation marks.

    Example:
    >>> segmentation = Words.learn([["the cat", "the dog"]], size=5)
    >>> segmentation.ids("The cat").numpy(), segmentation.ids("the cat").numpy()
    (array([1, 4], dtype=int32), array([3, 4], dtype=int32))
    >>> segmentation.texts([3, 4, 2, 0]).numpy()
    b'the cat'
    """

    _split = staticmethod(words)
    _unknown = f"{BLANK}\ufffd"


class Characters(_Listed):
    """Texts as Unicode characters.

    Example:
    >>> segmentation = Characters.learn([["a cat"]], size=8)
    >>> segmentation.pieces("a cat").numpy()[1].decode()
    '▁'
    >>> segmentation.texts(segmentation.ids("a tac")).numpy()
    b'a tac'
    """

    _split = staticmethod(characters)
    _unknown = "\ufffd"
