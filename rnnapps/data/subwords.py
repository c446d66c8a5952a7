"""Text as subwords: the words that are frequent, and the parts of the others.

Pieces are learnt by the sentencepiece library, and applied by core TensorFlow operations.
"""

import collections
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from rnnapps.data.segmentation import BLANK, Segmentation, characters, normalise
from rnnapps.data.text import as_lines, count_tokens, lines_of, lookup_tables

_BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
# What an unknown character costs more than the least likely piece, as in the library.
_UNKNOWN_PENALTY = 10.0
_RESERVED = "\u2585"


class Subwords(Segmentation):
    r"""Texts as pieces of a unigram language model (Kudo 2018, https://aclanthology.org/P18-1007).

    Of all ways to write a text in pieces $x_1 \dots x_n$, the one with the highest
    $\sum_i \log p(x_i)$ is taken. A character that no piece holds is written as its bytes in UTF-8,
    so that every text can be written and read back.

    Args:
        pieces: the pieces in the order of their ids, without the special ones and the bytes; the
            mark of a blank may only be the first character of a piece.
        scores: the logarithm of each piece's probability.
        file: the file that holds them, as `content` gives it; where it is given, the lookup reads
            that file and an exported model carries it as an asset.
        lowercase: whether texts are lower-cased first. Defaults to False.

    Raises:
        ValueError: if a piece could not be part of a text.

    Example:
    >>> segmentation = Subwords(["▁", "▁un", "a", "b", "le", "able"], [-3, -3, -4, -4, -4, -5])
    >>> [piece.decode() for piece in segmentation.pieces("unable").numpy()]
    ['▁un', 'able']
    >>> segmentation.texts(segmentation.ids("able, unable")).numpy()
    b'able, unable'
    """

    _FIRST_BYTE = len(Segmentation.SPECIAL)
    _FIRST_PIECE = _FIRST_BYTE + len(_BYTES)

    def __init__(
        self,
        pieces: Sequence[str],
        scores: Sequence[float],
        file: Path | None = None,
        lowercase: bool = False,
    ):
        super().__init__(lowercase)
        for piece in pieces:
            if not piece or BLANK in piece[1:] or set(piece) & set("\t\n\r "):
                raise ValueError(
                    "a piece holds no white space, and the mark of a blank only at its beginning. "
                    f"Received: {piece!r}"
                )
        self._tokens = (*self.SPECIAL, *_BYTES, *pieces)
        special = np.full(self._FIRST_PIECE, -np.inf)
        self._scores = np.concatenate([special, scores]).astype(np.float32)
        self._unknown_score = self._scores.min(where=self._scores > -np.inf, initial=0.0)
        self._unknown_score -= np.float32(_UNKNOWN_PENALTY)
        self._longest = max(map(len, pieces), default=1)
        otherwise = self.UNKNOWN, self.SPECIAL[self.UNKNOWN]
        self._to_id, self._to_token = lookup_tables(self._tokens, file, otherwise, column=0)

    @classmethod
    def learn(cls, texts, size, min_count=1, lowercase=False, most_texts=1_000_000):
        """Learns pieces; `Segmentation.learn` has the other arguments.

        Args:
            most_texts: how many texts, more than 100, are drawn to learn from. Defaults to
                1,000,000.

        Raises:
            ValueError: if `size` has no room for the bytes and the frequent characters.
        """
        import sentencepiece  # what is exported, and what is loaded, need not have it

        counts, failures = collections.Counter(), []

        def sentences():
            try:
                for batch in texts:
                    text = normalise(batch, lowercase)
                    count_tokens(characters(text), counts, collections.Counter())
                    for sentence in text.numpy().tolist():
                        # The library leaves out a sentence with a character of its own.
                        if words := sentence.replace(_RESERVED.encode(), b" ").split():
                            yield b" ".join(words)
            except (Exception, KeyboardInterrupt) as error:
                failures.append(error)  # the library would only tell its name
                raise

        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=sentences(),
                model_writer=model,
                model_type="unigram",
                vocab_size=size,
                hard_vocab_limit=False,
                byte_fallback=True,
                character_coverage=0.9999,
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                input_sentence_size=most_texts,
                shuffle_input_sentence=True,
                max_sentence_length=1 << 30,
                # Sums depend on how many threads there are.
                num_threads=8,
                pad_id=cls.PADDING,
                unk_id=cls.UNKNOWN,
                eos_id=cls.END,
                bos_id=-1,
                minloglevel=2,
            )
        except RuntimeError as error:
            if failures:
                raise failures[0] from None
            if counts.keys() <= {_RESERVED}:
                return cls([], [], lowercase=lowercase)
            if "required_chars" not in str(error):
                raise
            raise ValueError(
                f"subwords need {cls._FIRST_PIECE} ids for bytes and special tokens and one for "
                f"each frequent character; the texts have {len(counts)} different ones. "
                f"Received: size={size}"
            ) from error
        learnt = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        rows = range(cls._FIRST_PIECE, learnt.get_piece_size())
        known = {learnt.id_to_piece(row): learnt.get_score(row) for row in rows}
        frequent = {c for c, count in counts.items() if count >= min_count} | {BLANK}
        known = {piece: score for piece, score in known.items() if frequent.issuperset(piece)}
        return cls([*known], [*known.values()], lowercase=lowercase)

    @classmethod
    def load(cls, file, lowercase=False):
        lines = lines_of(file.read_bytes())[cls._FIRST_PIECE :]
        pieces, scores = (
            zip(*(line.split("\t") for line in lines), strict=True) if lines else ([], [])
        )
        return cls(pieces, [float(score) for score in scores], file, lowercase)

    def content(self):
        """Returns one token a line with its score, so that the line number is the id."""
        scores = np.where(self._scores > -np.inf, self._scores, np.float32(0))
        return as_lines(
            f"{token}\t{score}" for token, score in zip(self._tokens, scores, strict=True)
        )

    def __len__(self):
        return len(self._tokens)

    def _pieces(self, text):
        ids = self._ids(text)
        return ids.with_flat_values(self._to_token.lookup(tf.cast(ids.flat_values, tf.int64)))

    def _strings(self, ids):
        tokens = self._to_token.lookup(tf.cast(ids, tf.int64))
        tokens = tf.where(ids == self.UNKNOWN, "\ufffd", tokens)
        byte = tf.cast(ids, tf.int32) - self._FIRST_BYTE
        is_byte = (byte >= 0) & (byte < len(_BYTES))
        all_bytes = tf.constant([bytes([byte]) for byte in range(len(_BYTES))])
        return tf.where(is_byte, tf.gather(all_bytes, tf.where(is_byte, byte, 0)), tokens)

    def _ids(self, text):
        split = tf.raw_ops.StringSplitV2(input=text, sep="")
        rows = tf.range(tf.size(text, tf.int64) + 1)  # [batch + 1]
        first_words = tf.searchsorted(split.indices[:, 0], rows)  # [batch + 1]
        # No piece goes from one word into the next, so each different word is written once.
        words, which = tf.unique(split.values)  # [different], [words]
        words, order = _longest_first(words)  # [different]
        which = tf.gather(tf.math.invert_permutation(order), which)
        ids = tf.gather(self._ids_of(BLANK + words), which)  # [words, (tokens)]
        row_splits = tf.gather(ids.row_splits, first_words)  # [batch + 1]
        return tf.RaggedTensor.from_row_splits(ids.values, row_splits, validate=False)

    # A function, since the lists of a loop do not work outside a graph.
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def _ids_of(self, words: tf.Tensor) -> tf.RaggedTensor:
        """The ids of words `[words]`, the longest first: ragged `[words, (tokens)]`."""
        with tf.device("CPU:0"):  # a function knows nothing of the device outside it
            spelt = _Spelt(words)
            ids = self._ids_before(spelt)  # [characters, longest]
            widths = self._best_widths(spelt, tf.gather(self._scores, ids))  # [characters]
            is_last = _last_of_pieces(spelt, widths)  # [characters]
            column = self._longest - widths
            ids = tf.gather_nd(ids, tf.stack([tf.range(spelt.size), column], 1))  # [characters]
            ids = tf.where(is_last, ids, self.PADDING)
            ids = self._with_bytes(ids, spelt.characters)  # [characters, 4]
            is_token = ids != self.PADDING
            counts = tf.cumsum(tf.math.count_nonzero(is_token, 1))  # [characters]
            row_splits = tf.gather(tf.concat([[0], counts], 0), spelt.splits)  # [words + 1]
            tokens = tf.gather_nd(ids, tf.where(is_token))  # [tokens]
            return tf.RaggedTensor.from_row_splits(tokens, row_splits, validate=False)

    def _with_bytes(self, ids: tf.Tensor, characters: tf.Tensor) -> tf.Tensor:
        """Writes unknown characters as bytes: ids `[characters]` to `[characters, 4]`, padded."""
        # No byte of a text is 0, so that a 0 is where a character has no more of them.
        in_bytes = tf.cast(tf.io.decode_raw(characters, tf.uint8, fixed_length=4), tf.int32)
        in_bytes = tf.where(in_bytes > 0, in_bytes + self._FIRST_BYTE, self.PADDING)
        alone = ids[:, None] * [1, 0, 0, 0]  # [characters, 4]
        return tf.where((ids == self.UNKNOWN)[:, None], in_bytes, alone)

    def _ids_before(self, spelt: "_Spelt") -> tf.Tensor:
        """The pieces that end with each character, int32 `[characters, longest]`, longest first.

        Padding stands for one that would begin before its word, unknown for another that is none.
        """
        ngrams, splits = tf.raw_ops.StringNGrams(
            data=spelt.characters,
            data_splits=spelt.splits,
            separator="",
            ngram_widths=list(range(1, self._longest + 1)),
            left_pad="",
            right_pad="",
            pad_width=0,
            preserve_short_sequences=False,
        )
        ids = tf.cast(self._to_id.lookup(ngrams), tf.int32)  # [n-grams]
        # Of each word, there are first all n-grams of one character, then all of two, and so on.
        width = np.arange(self._longest, 0, -1, dtype=np.int32)  # [longest]
        start = spelt.position[:, None] + (1 - width)  # [characters, longest]
        length = tf.gather(spelt.splits[1:] - spelt.splits[:-1], spelt.word)  # [characters]
        narrower = length[:, None] * (width - 1) - (width - 1) * (width - 2) // 2
        index = tf.gather(splits, spelt.word)[:, None] + narrower + start
        is_inside = start >= 0  # [characters, longest]
        return tf.where(is_inside, tf.gather(ids, tf.where(is_inside, index, 0)), self.PADDING)

    def _best_widths(self, spelt: "_Spelt", scores: tf.Tensor) -> tf.Tensor:
        """The width of the last piece of the best way to write each word up to each character.

        Args:
            spelt: the words.
            scores: of the pieces that end with each character, `[characters, longest]`, longest
                first.

        Returns:
            int32 `[characters]`.
        """
        longest = self._longest
        # A character can always be a piece of its own.
        alone = np.full(longest, -np.inf, np.float32)
        alone[-1] = self._unknown_score
        scores = tf.maximum(scores, alone)
        # All words at once, character by character: Viterbi's algorithm.
        by_position = tf.math.top_k(-spelt.position, spelt.size).indices
        counts = tf.raw_ops.DenseBincount(
            input=spelt.position, size=spelt.longest_word, weights=np.zeros(0, np.int32)
        )
        steps = tf.size(counts)
        scores = tf.TensorArray(
            tf.float32, steps, infer_shape=False, element_shape=[None, longest]
        ).split(tf.gather(scores, by_position), counts)
        columns = tf.TensorArray(tf.int32, steps, infer_shape=False, element_shape=[None, 1])

        def step(number, before, columns):
            here = scores.read(number)  # [words that go on, longest]
            before = tf.slice(before, [0, 1], tf.shape(here))
            best, column = tf.math.top_k(before + here, 1)  # [words that go on, 1]
            return number + 1, tf.concat([before, best], 1), columns.write(number, column)

        # The best scores up to each of the last characters; before the first there is nothing.
        before = np.full([1, longest + 1], -np.inf, np.float32)
        before[:, -1] = 0
        _, _, columns = tf.while_loop(
            lambda number, *_: number < steps,
            step,
            (0, tf.tile(before, [tf.size(spelt.splits) - 1, 1]), columns),
            shape_invariants=(None, tf.TensorShape([None, longest + 1]), None),
        )
        widths = longest - columns.concat()  # [characters, 1]
        return tf.scatter_nd(by_position[:, None], widths[:, 0], spelt.size[None])


class _Spelt:
    """Words in characters, all in a row, and where each character stands.

    Args:
        words: string tensor `[words]`, none of them empty.
    """

    def __init__(self, words: tf.Tensor):
        spelt = tf.strings.unicode_split(words, "UTF-8")
        self.characters = spelt.values  # [characters]
        self.splits = tf.cast(spelt.row_splits, tf.int32)  # [words + 1]
        self.size = tf.size(self.characters)
        starts = self.splits[:-1]
        is_first = tf.scatter_nd(starts[:, None], tf.ones_like(starts), self.size[None])
        self.word = tf.cumsum(is_first) - 1  # [characters]
        self.position = tf.range(self.size) - tf.gather(starts, self.word)  # [characters]
        self.longest_word = tf.reduce_max(tf.concat([[-1], self.position], 0)) + 1


def _longest_first(words: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Sorts words `[words]`, and says where each has been."""
    lengths = tf.strings.length(words, "UTF8_CHAR")  # [words]
    order = tf.math.top_k(lengths, tf.size(lengths)).indices
    return tf.gather(words, order), order


def _last_of_pieces(spelt: _Spelt, widths: tf.Tensor) -> tf.Tensor:
    """Whether each character is the last of a piece on the best way through its word.

    Args:
        spelt: the words.
        widths: of the best piece that ends with each character, int32 `[characters]`.

    Returns:
        bool `[characters]`.
    """
    # Counted from 1, since the first piece begins behind nothing.
    size = spelt.size + 1
    before = tf.range(size) - tf.concat([[0], widths], 0)  # [1 + characters]
    ends = spelt.splits[1:, None]  # [words, 1]
    is_last = tf.scatter_nd(ends, tf.ones_like(ends[:, 0]), size[None])  # [1 + characters]

    def twice_as_far(reach, is_last, before):
        is_last = tf.maximum(is_last, tf.math.unsorted_segment_max(is_last, before, size))
        return 2 * reach, is_last, tf.gather(before, before)

    # From each last character to the ones one piece before, then two, then four: few rounds,
    # however many pieces a word has.
    _, is_last, _ = tf.while_loop(
        lambda reach, *_: reach < spelt.longest_word,
        twice_as_far,
        (1, is_last, before),
    )
    return is_last[1:] > 0
