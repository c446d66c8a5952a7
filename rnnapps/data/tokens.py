r"""Raw text to tokens that know where they stood: `text[start:end] == token`, byte for byte.

The rules are those of the texts that taggers are trained on (CoNLL-2003, the Penn Treebank), made
fit for any text. Everything is made of core TensorFlow operations, and takes time in proportion to
the length of the texts, whatever they hold.

>>> def show(text):
...     print(*(token.decode() for token in tokenise(tf.constant([text])).tokens[0].numpy()))

White space, control and format characters separate tokens and belong to none. Every punctuation
mark and symbol is a token of its own, but two or more full stops, or hyphens, are one, and so are
one or two capitals with a dollar.

>>> show('He said: "Wait... no--never!" (It cost $5, or US$5.)')
He said : " Wait ... no -- never ! " ( It cost $ 5 , or US$ 5 . )

Letters, digits and underscores make words. Hyphens, `&` and apostrophes join them; `.` `,` `:` `/`
join digits. The contractions n't 's 're 've 'll 'd 'm, in small or capital letters, are split off.
Typographic apostrophes are as plain ones.

>>> show("O'Brien's Anglo-Irish AT&T didn't pay 1,234.5 and/or won 3-1 on 1996-08-22 at 12:30.")
O'Brien 's Anglo-Irish AT&T did n't pay 1,234.5 and / or won 3-1 on 1996-08-22 at 12:30 .

Dotted letters keep their full stops. So do a single capital that does not end its line, a number
of one or two digits at the start of a line and before a blank, and these:
Adm Ala Apr Ariz Aug Ave Blvd Bros Calif Capt Cmdr Co Col Colo Conn Corp Dec Dr Feb Fla Ft Gen Gov
Hon Ill Inc Jan Jr Jul Jun Lt Ltd Maj Mar Mass Messrs Mich Minn Mo Mr Mrs Ms Mt Nov Oct Okla Pa
Ph.D Prof Rd Rep Rev Sen Sep Sept Sgt Sr St Tenn Tex Va Wash Wis etc vs.

>>> show("1. Mr. J. Smith of the non-U.S. U.N.-led body saw Plan B.")
1. Mr. J. Smith of the non-U.S. U.N.-led body saw Plan B .

Web and e-mail addresses, `@user` and `#tag` stay whole, without the punctuation behind them. A web
address begins with http://, https://, ftp:// or www., or its host ends with com, org, net, edu,
gov, mil, info, biz, io, or with co or ac and a country.

>>> show("See https://a.org/b?c=1, rnn.co.uk (or j.doe@mail.org): @user #NER2003!")
See https://a.org/b?c=1 , rnn.co.uk ( or j.doe@mail.org ) : @user #NER2003 !

Combining marks, variation selectors, joiners and skin tones belong to the character before them;
symbols with joiners between them are one token, as are the two letters of a flag.

>>> show("cafe\u0301 \U0001f44d\U0001f3fd\U0001f468\u200d\U0001f680\U0001f1eb\U0001f1f7!")
café 👍🏽 👨‍🚀 🇫🇷 !

In the scripts without blanks between words, each Han character is a token, and so is each run of
Hiragana, of Katakana, and of the letters of Thai, Lao, Khmer or Myanmar.

>>> show("2019年に東京タワーへ")
2019 年 に 東 京 タワー へ

What is not valid UTF-8 counts as letters, so that words in another encoding stay whole.
"""

import functools
import unicodedata
from typing import NamedTuple

import numpy as np
import tensorflow as tf

# Each character is of a kind, itself a character: one of ASCII mostly of its own, any other of one
# that stands for all that are alike to the rules. The rules are written for the kinds of a text.
_BLANK, _LINE_END, _CAPITAL, _LETTER, _DIGIT = " \nXx0"
_MARK, _FLAG, _HAN, _HIRAGANA, _KATAKANA, _PROLONGED, _UNSPACED = "\1\2\3\4\5\6\7"
_SYMBOL, _JOINED = "\x10\x11"  # the second stands behind a zero-width joiner
_BREAK = "\x1e"  # what the rules put behind a token

_KIND_OF_CATEGORY = {
    **dict.fromkeys(["Lu", "Lt"], _CAPITAL),
    **dict.fromkeys(["Ll", "Lm", "Lo"], _LETTER),
    **dict.fromkeys(["Nd", "Nl", "No"], _DIGIT),
    **dict.fromkeys(["Mn", "Mc", "Me"], _MARK),
    **dict.fromkeys(["Zs", "Zl", "Zp", "Cc", "Cf"], _BLANK),
}
# The letters of some scripts, from the first character to the last.
_SCRIPTS = [
    (_HIRAGANA, 0x3041, 0x309F),
    (_KATAKANA, 0x30A0, 0x30FF),
    (_KATAKANA, 0x31F0, 0x31FF),
    (_KATAKANA, 0xFF66, 0xFF9F),
    (_UNSPACED, 0x0E00, 0x0EFF),  # Thai and Lao
    (_UNSPACED, 0x1000, 0x109F),  # Myanmar
    (_UNSPACED, 0x1780, 0x17FF),  # Khmer
    (_UNSPACED, 0xA9E0, 0xA9FF),  # Myanmar, extended
    (_UNSPACED, 0xAA60, 0xAA7F),
]
# Characters whose category does not matter.
_RANGES = [
    (_HAN, 0x2E80, 0x2FDF),  # radicals
    (_HAN, 0x3005, 0x3005),  # the iteration mark
    (_HAN, 0x3007, 0x3007),  # zero
    (_HAN, 0x3400, 0x4DBF),
    (_HAN, 0x4E00, 0x9FFF),
    (_HAN, 0xF900, 0xFAFF),
    (_HAN, 0x20000, 0x3FFFD),
    (_PROLONGED, 0x30FC, 0x30FC),
    (_FLAG, 0x1F1E6, 0x1F1FF),
    (_MARK, 0x1F3FB, 0x1F3FF),  # skin tones
    (_MARK, 0x00AD, 0x00AD),  # soft hyphen
    (_MARK, 0x200C, 0x200D),  # zero-width non-joiner and joiner
    (_MARK, 0x2060, 0x2060),  # word joiner
    (_MARK, 0xE0020, 0xE007F),  # tags of flags
    (_LETTER, 0xFFFD, 0xFFFD),  # in place of what is not UTF-8
    *(("'", code, code) for code in (0x2018, 0x2019, 0x201B, 0x02BC, 0xFF07)),
    ("-", 0x2010, 0x2011),
]
_ZERO_WIDTH_JOINER = 0x200D

_ABBREVIATIONS = (
    "Adm Ala Apr Ariz Aug Ave Blvd Bros Calif Capt Cmdr Co Col Colo Conn Corp Dec Dr Feb Fla Ft "
    "Gen Gov Hon Ill Inc Jan Jr Jul Jun Lt Ltd Maj Mar Mass Messrs Mich Minn Mo Mr Mrs Ms Mt Nov "
    "Oct Okla Pa Ph.D Prof Rd Rep Rev Sen Sep Sept Sgt Sr St Tenn Tex Va Wash Wis etc vs"
).replace(".", r"\.")

_ATOM = r"(?:[A-Za-z_]|\d(?:[.,:/]\d)*)"
_WORD = rf"{_ATOM}(?:[-&']?{_ATOM})*"
_CONTRACTION = r"(?i:n't|'(?:s|re|ve|ll|d|m))\b"
_LABEL = r"\w+(?:-\w+)*"
_TOP = r"(?:com|org|net|edu|gov|mil|info|biz|io|(?:co|ac)\.[a-z]{2})(?:\.[a-z]{2})?\b"
_PATH = r"[!#-;=?-_a-~]*[\w/#=&%+~@$*]"
# The first that matches is taken. None may look much further ahead than the one that is taken in
# its stead, or a long text would be read again for each of its tokens: hence the bounds.
_TOKEN = "|".join(
    [
        rf"(?i:(?:https?|ftp)://|www\.){_PATH}",
        rf"\w+(?:[.%+-]\w+){{0,4}}@{_LABEL}(?:\.{_LABEL}){{1,4}}",
        rf"(?i:{_LABEL}\.(?:{_LABEL}\.){{0,3}}{_TOP})(?:/{_PATH}|/)?",
        r"[@#]\d*[A-Za-z_]\w*",
        rf"(?:{_ABBREVIATIONS.replace(' ', '|')})\.",
        rf"(?:(?:{_WORD}-)?(?:[A-Za-z]\.){{2,}}(?:[A-Za-z]\b)?|[A-Za-z]\.[A-Za-z]\b|[A-Z]\.)(?:-{_WORD})?",
        r"[A-Z]{1,2}\$",
        _WORD,
        r"\.\.+",
        "--+",
        _FLAG + _FLAG,
        f"[{_SYMBOL}{_JOINED}]{_JOINED}*",
        f"{_HIRAGANA}[{_HIRAGANA}{_PROLONGED}]*",
        f"[{_KATAKANA}{_PROLONGED}]+",
        f"{_UNSPACED}+",
        r"[^ \n]",
    ]
)
# What is matched comes in two parts. The second is a contraction, split off the shortest word that
# has one; the full stop of a capital at its line's end; the blank behind a number; or nothing.
_RULE = "|".join(
    [
        rf"(|{_ATOM}(?:[-&']?{_ATOM})*?)({_CONTRACTION})",
        r"([A-Z])(\. *\n)",
        r"(?m:^)(\d{1,2}\.)( )",
        f"({_TOKEN})",
    ]
)
_REWRITE = rf"\1\3\5\7{_BREAK}\2\4\6{_BREAK}"


class Tokens(NamedTuple):
    """The tokens of a batch of texts and where they stand, ragged `[batch, (tokens)]`."""

    tokens: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor


def tokenise(text: tf.Tensor) -> Tokens:
    r"""Splits raw text into tokens, and says at which bytes each begins and ends.

    The module's documentation has the rules. The text may hold anything; it need not be UTF-8.

    Args:
        text: string tensor `[batch]`.

    Returns:
        `tokens`, string, none of them empty, and `starts` and `ends`, int32 byte offsets into the
        text as it was given, such that `text[start:end] == token`. Offsets rise and do not overlap;
        a text of nothing but white space has no tokens.

    Example:
    >>> tokens, starts, ends = tokenise(tf.constant(["Zürich  isn't big", ""]))
    >>> tokens.to_list()
    [[b'Z\xc3\xbcrich', b'is', b"n't", b'big'], []]
    >>> starts.to_list(), ends.to_list()
    ([[0, 9, 11, 15], []], [[7, 11, 14, 18], []])
    """
    # Strings live on the CPU, and so does what is made of them here.
    with tf.device("CPU:0"):
        # One string of all texts makes one call of each operation; no token spans a line end.
        whole = tf.strings.reduce_join(text, separator="\n") + "\n"
        lengths = tf.strings.length(text) + 1  # [batch]
        first_bytes = tf.cumsum(lengths, exclusive=True)  # [batch]
        starts, ends = _spans(whole)  # [tokens], [tokens]
        row_splits = tf.searchsorted(starts, tf.concat([first_bytes, [tf.int32.max]], 0))
        row_splits = tf.cast(row_splits, tf.int64)  # [batch + 1]
        before = tf.repeat(first_bytes, row_splits[1:] - row_splits[:-1])  # [tokens]
        flat = _slices(whole, starts, ends), starts - before, ends - before
        return Tokens(
            *(
                tf.RaggedTensor.from_row_splits(values, row_splits, validate=False)
                for values in flat
            )
        )


def _spans(text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The first byte of each token of a text that ends with a line end, and the one behind it."""
    codes, first_bytes = tf.strings.unicode_decode_with_offsets(text, "UTF-8")  # [characters]
    kinds = _kinds(codes)  # [characters]
    codes_before = tf.concat([[0], codes[:-1]], 0)
    before = tf.concat([[_code(_LINE_END)], kinds[:-1]], 0)
    is_mark = kinds == _code(_MARK)
    is_attached = is_mark & ~_is_blank(before)
    # A mark that has nothing to belong to is a symbol.
    kinds = tf.where(is_mark, _code(_SYMBOL), kinds)
    is_joined = (kinds == _code(_SYMBOL)) & (codes_before == _ZERO_WIDTH_JOINER)
    kinds = tf.where(is_joined, _code(_JOINED), kinds)
    # From here on, a character is one with its marks.
    own = tf.where(~is_attached)[:, 0]  # [characters]
    kinds = tf.gather(kinds, own)  # [characters]
    first_bytes = tf.cast(tf.gather(first_bytes, own), tf.int32)  # [characters]

    broken = tf.strings.regex_replace(_string(kinds), _RULE, _REWRITE)
    kinds = tf.io.decode_raw(broken, tf.uint8)  # [characters and breaks]
    is_break = kinds == _code(_BREAK)
    is_inside = ~(is_break | _is_blank(kinds))
    is_first = is_inside & ~tf.concat([[False], is_inside[:-1]], 0)
    is_last = is_inside & ~tf.concat([is_inside[1:], [False]], 0)
    character = tf.cumsum(tf.cast(~is_break, tf.int32)) - 1
    first = tf.gather(character, tf.where(is_first)[:, 0])  # [tokens]
    last = tf.gather(character, tf.where(is_last)[:, 0])  # [tokens]
    return tf.gather(first_bytes, first), tf.gather(first_bytes, last + 1)


def _slices(text: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
    """Cuts a text, which ends with a line end, into slices that hold none, `[slices]`.

    `tf.strings.substr` would need a copy of the text for each slice.
    """
    text_bytes = tf.io.decode_raw(text, tf.uint8)  # [bytes]
    slices = tf.ragged.range(starts, ends + 1)  # [slices, (bytes)], with one more at the end
    is_end = slices.flat_values == tf.repeat(ends, slices.row_lengths())
    sliced = tf.where(is_end, _code(_LINE_END), tf.gather(text_bytes, slices.flat_values))
    parts = tf.raw_ops.StringSplitV2(input=[_string(sliced)], sep=_LINE_END)
    return parts.values[:-1]  # [slices]


def _string(content: tf.Tensor) -> tf.Tensor:
    """Makes one string of uint8 bytes."""
    # The protocol buffer of a tensor ends with its content.
    size = tf.size(content)
    serialised = tf.io.serialize_tensor(content)
    return tf.strings.substr(serialised, tf.strings.length(serialised) - size, size)


def _code(kind: str) -> np.uint8:
    return np.uint8(ord(kind))


def _is_blank(kinds: tf.Tensor) -> tf.Tensor:
    return (kinds == _code(_BLANK)) | (kinds == _code(_LINE_END))


def _kinds(codes: tf.Tensor) -> tf.Tensor:
    """Looks up the kinds of int32 code points: uint8, in their shape."""
    pages, kinds = _table()
    page = tf.gather(tf.constant(pages), codes // 256)
    return tf.gather(tf.constant(kinds), page * 256 + codes % 256)


@functools.cache
def _table() -> tuple[np.ndarray, np.ndarray]:
    """The kinds of all code points, as pages of 256 of which equal ones are kept once.

    Returns:
        The number of each page's content, int32 `[4352]`, and the contents in a row, uint8.
    """
    kinds = np.full(0x110000, ord(_SYMBOL), np.uint8)
    is_letter = np.zeros(kinds.shape, bool)
    for code in [*range(0x20000), *range(0xE0000, 0xE1000)]:
        category = unicodedata.category(chr(code))
        kinds[code] = ord(_KIND_OF_CATEGORY.get(category, _SYMBOL))
        is_letter[code] = category[0] == "L"
    for kind, first, last in _SCRIPTS:
        script = slice(first, last + 1)
        kinds[script][is_letter[script]] = ord(kind)
    for kind, first, last in _RANGES:
        kinds[first : last + 1] = ord(kind)
    printable = np.arange(0x21, 0x7F)
    kinds[printable] = printable
    kinds[ord(_LINE_END)] = ord(_LINE_END)
    numbers = {}
    pages = [numbers.setdefault(page.tobytes(), len(numbers)) for page in kinds.reshape(-1, 256)]
    return np.array(pages, np.int32), np.frombuffer(b"".join(numbers), np.uint8)
