"""Tokens and their offsets: exact examples, and a tokeniser that reads one character at a time."""

import unicodedata

import hypothesis
import hypothesis.strategies as st
import pytest
import tensorflow as tf

from rnnapps.data import tokens
from rnnapps.data.tokens import tokenise

TEXTS = tf.TensorSpec([None], tf.string)
tokenise_graph = tf.function(tokenise, input_signature=[TEXTS], autograph=False)

APOSTROPHES = "'\u2018\u2019\u201b\u02bc\uff07"
JOINERS = "\u00ad\u200c\u200d\u2060"
ABBREVIATIONS = tokens.__doc__.split("and these:")[1].split(".\n")[0].split()
SCRIPTS = {"HIRAGANA": "hiragana", "KATAKANA": "katakana"} | dict.fromkeys(
    ["THAI", "LAO", "KHMER", "MYANMAR"], "unspaced"
)
TOPS = "com org net edu gov mil info biz io".split()


class Character:
    """A character with its marks, and what the rules ask of it."""

    def __init__(self, text, start, end):
        self.text, self.start, self.end = text, start, end
        code, category = ord(text), unicodedata.category(text)
        self.is_mark = category[0] == "M" or text in JOINERS or in_ranges(
            code, (0x1F3FB, 0x1F3FF), (0xE0020, 0xE007F)
        )  # fmt: skip
        self.is_blank = not self.is_mark and (category[0] == "Z" or category in ("Cc", "Cf"))
        self.is_han = in_ranges(
            code, (0x2E80, 0x2FDF), (0x3005, 0x3005), (0x3007, 0x3007), (0x3400, 0x4DBF),
            (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFD),
        )  # fmt: skip
        self.script = None
        if category[0] == "L" and code < 0x10000:
            name = unicodedata.name(text, "").removeprefix("HALFWIDTH ")
            self.script = SCRIPTS.get(name.replace("-", " ").split(" ")[0])
        self.is_prolonged = text == "\u30fc"
        if text in APOSTROPHES:
            text = "'"
        elif text in "\u2010\u2011":
            text = "-"
        self.plain = text
        is_other = self.is_mark or self.is_han or self.script or text == "'"
        self.is_digit = category[0] == "N" and not is_other
        self.is_letter = text == "\ufffd" or (category[0] == "L" and not is_other)
        self.is_capital = category in ("Lu", "Lt")
        self.is_word = self.is_letter or self.is_digit or text == "_"
        self.is_flag = in_ranges(code, (0x1F1E6, 0x1F1FF))
        self.is_symbol = not (
            self.plain.isascii() or self.is_word or self.is_han or self.script or self.is_flag
            or self.is_blank
        )  # fmt: skip
        self.joins = False  # whether a joiner is its last mark

    def in_path(self):
        return self.is_word or (
            self.plain.isascii() and not self.is_blank and self.plain not in '"<>`'
        )

    def ends_path(self):
        return self.is_word or self.plain in "/#=&%+~@$*"


def in_ranges(code, *ranges):
    return any(first <= code <= last for first, last in ranges)


def characters_of(content: bytes) -> list[Character]:
    """Decodes, one character at a time, and gives each its marks."""
    found, position, after_blank = [], 0, True
    while position < len(content):
        for size in range(1, 5):
            try:
                text = content[position : position + size].decode()
                break
            except UnicodeDecodeError as error:
                text = "\ufffd"
                if error.reason != "unexpected end of data":
                    size = error.end
                    break
        size = min(size, len(content) - position)
        character = Character(text, position, position + size)
        if character.is_mark and not after_blank:
            found[-1].end = character.end
            found[-1].joins = text == "\u200d"
        else:
            character.joins = text == "\u200d"
            found.append(character)
        after_blank = character.is_blank
        position += size
    return found


class Scanner:
    """Reads the characters of a text, token by token."""

    def __init__(self, content: bytes):
        self.all = characters_of(content)

    def at(self, i, test):
        return i < len(self.all) and bool(test(self.all[i]))

    def word_at(self, i):
        return self.at(i, lambda c: c.is_word)

    def letter_at(self, i):
        return self.at(i, lambda c: c.is_letter)

    def capital_at(self, i):
        return self.at(i, lambda c: c.is_letter and c.is_capital)

    def digit_at(self, i):
        return self.at(i, lambda c: c.is_digit)

    def is_plain(self, i, text, fold=False):
        there = "".join(c.plain for c in self.all[i : i + len(text)])
        return there.isascii() and (there.lower() if fold else there) == text

    def any_plain(self, i, marks):
        return self.at(i, lambda c: c.plain in marks)

    def goes_on(self, i):
        """How many characters more belong to the word that goes up to `i`."""
        if self.word_at(i):
            return 1
        if self.any_plain(i, "-&'") and self.word_at(i + 1):
            return 2
        if self.any_plain(i, ".,:/") and self.digit_at(i - 1) and self.digit_at(i + 1):
            return 2
        return 0

    def word(self, i):
        """The end of the word at `i`."""
        while more := self.goes_on(i):
            i += more
        return i

    def contraction(self, i):
        for text in ("n't", "'s", "'re", "'ve", "'ll", "'d", "'m"):
            if self.is_plain(i, text, fold=True) and not self.word_at(i + len(text)):
                return i + len(text)
        return None

    def run(self, i, test):
        while self.at(i, test):
            i += 1
        return i

    def path(self, i):
        """The end of the rest of a web address; None if it holds nothing."""
        end = self.run(i, Character.in_path)
        while end > i and not self.all[end - 1].ends_path():
            end -= 1
        return end if end > i else None

    def labels(self, i, most):
        """All ends of one to `most` labels with full stops between them."""
        ends, open_ends = [], [i]
        for _ in range(most):
            reached = set()
            for start in open_ends:
                j = start
                while self.word_at(j) or (
                    j > start and self.any_plain(j, "-") and self.word_at(j + 1)
                ):
                    j += 1
                    if self.word_at(j - 1):
                        reached.add(j)
            ends.append(sorted(reached))
            open_ends = [j + 1 for j in reached if self.any_plain(j, ".")]
        return ends

    def url(self, i):
        for start in ("https://", "http://", "ftp://", "www."):
            if self.is_plain(i, start, fold=True):
                return self.path(i + len(start))
        return None

    def mail(self, i):
        if not self.word_at(i):
            return None
        j = self.run(i, lambda c: c.is_word)
        for _ in range(4):
            if self.any_plain(j, ".%+-") and self.word_at(j + 1):
                j = self.run(j + 1, lambda c: c.is_word)
        if not self.any_plain(j, "@"):
            return None
        return max((end for ends in self.labels(j + 1, 5)[1:] for end in ends), default=None)

    def domain(self, i):
        best = None
        for ends in self.labels(i, 7)[1:]:
            for end in ends:
                parts = "".join(c.plain for c in self.all[i:end])
                if self.word_at(end) or not self.is_domain(parts.lower().split(".")):
                    continue
                best = max(best or 0, end)
        if best is not None and self.any_plain(best, "/"):
            return self.path(best + 1) or best + 1
        return best

    @staticmethod
    def is_domain(parts):
        def is_country(part):
            return len(part) == 2 and part.replace("\ufffd", "x").isalpha()

        candidates = [parts, parts[:-1]] if is_country(parts[-1]) else [parts]
        for rest in candidates:
            if rest and rest[-1] in TOPS and 2 <= len(rest) <= 5:
                return True
            if rest[-2:-1] in (["co"], ["ac"]) and is_country(rest[-1]) and 3 <= len(rest) <= 6:
                return True
        return False

    def abbreviation(self, i):
        for text in ABBREVIATIONS:
            if self.is_plain(i, f"{text}."):
                return i + len(text) + 1
        last = self.word(i) - 1 if self.word_at(i) else i
        for start in (last, i) if self.any_plain(last - 1, "-") and last > i + 1 else (i,):
            dotted = start
            while self.letter_at(dotted) and self.any_plain(dotted + 1, "."):
                dotted += 2
            if dotted - start >= 4 or start == i:
                break
        end = None
        if dotted - start >= 2 and self.letter_at(dotted) and not self.word_at(dotted + 1):
            end = dotted + 1
        elif dotted - start >= 4 or (dotted > start and self.capital_at(start)):
            end = dotted
        if end and self.any_plain(end, "-") and self.word_at(end + 1):
            end = self.word(end + 1)
        return end

    def tag(self, i):
        if not self.any_plain(i, "@#"):
            return None
        j = self.run(i + 1, lambda c: c.is_digit)
        if not self.at(j, lambda c: c.is_letter or c.plain == "_"):
            return None
        return self.run(j, lambda c: c.is_word)

    def token(self, i):
        """The ends of the one token at `i`, or of two."""
        j = i
        while True:
            if end := self.contraction(j):
                return [j, end] if j > i else [end]
            more = (1 if self.word_at(i) else 0) if j == i else self.goes_on(j)
            if not more:
                break
            j += more
        if self.capital_at(i) and self.any_plain(i + 1, "."):
            after = self.run(i + 2, lambda c: c.is_blank and c.text != "\n")
            if after == len(self.all) or self.all[after].text == "\n":
                return [i + 1, i + 2]
        end = self.run(i, lambda c: c.is_digit)
        if (
            (i == 0 or self.all[i - 1].text == "\n")
            and 1 <= end - i <= 2
            and self.any_plain(end, ".")
            and self.at(end + 1, lambda c: c.is_blank and c.text != "\n")
        ):
            return [end + 1]
        for rule in (self.url, self.mail, self.domain, self.tag, self.abbreviation):
            if (end := rule(i)) is not None:
                return [end]
        for count in (2, 1):
            if all(map(self.capital_at, range(i, i + count))) and self.any_plain(i + count, "$"):
                return [i + count + 1]
        if self.word_at(i):
            return [self.word(i)]
        for mark in ".-":
            end = self.run(i, lambda c, mark=mark: c.plain == mark)
            if end > i + 1:
                return [end]
        character = self.all[i]
        if character.is_flag:
            return [i + 2 if self.at(i + 1, lambda c: c.is_flag) else i + 1]
        if character.is_symbol:
            end = i + 1
            while self.all[end - 1].joins and self.at(end, lambda c: c.is_symbol):
                end += 1
            return [end]
        if character.script:
            prolongs = character.script == "hiragana"
            return [
                self.run(i, lambda c: c.script == character.script or (prolongs and c.is_prolonged))
            ]
        return [i + 1]

    def spans(self):
        """The first byte of each token, and the one behind it."""
        i, found = 0, []
        while i < len(self.all):
            if self.all[i].is_blank:
                i += 1
                continue
            for end in self.token(i):
                found.append((self.all[i].start, self.all[end - 1].end))
                i = end
        return found


def spans(contents: list[bytes]) -> list[list[tuple[int, int]]]:
    """The offsets that `tokenise` gives, after checking that they are those of the tokens."""
    found = tokenise_graph(tf.constant(contents, tf.string, [len(contents)]))
    rows = []
    for content, *row in zip(contents, *(part.to_list() for part in found), strict=True):
        rows.append([(start, end) for _, start, end in zip(*row, strict=True)])
        assert [content[start:end] for start, end in rows[-1]] == row[0]
    return rows


def split(text: str | bytes) -> list[str]:
    content = text.encode() if isinstance(text, str) else text
    (row,) = spans([content])
    return [content[start:end].decode("latin-1" if b"\xff" in content else "utf-8")
            for start, end in row]  # fmt: skip


PIECES = [
    *" \n\r\t\0\x1b\x1e\x01\x10'.,:/-&@#_()\"`<>?!%+=~$^*\\|{}[];", *"aAsStTnNdDmMiIxX019", "\r\n",
    "..", "...", "--", "n't", "N'T", "'s", "'re", "'VE", "'ll", "'d", "isn\u2019t", "O'Brien",
    "AT&T", "U.S.", "U.N", "-U.S.", "e.g.", "J.", "Ph.D.", "Mr.", "mr.", "Jan.", "St.", "No.", "I.",
    "A. \r\n", "1,234.5", "1996-08-22", "12:30", "3-1", "1. ", "US$", "C$5", "1/2", ".5", "v2.0",
    "http://", "https://a.b/c?d=e", "HTTP://X.Y", "www.", "www.a.b", "ftp://", "a.com", "A.CO.UK",
    "b.org/", "b.org/x,", "a-b.io.fr", "co", "uk", "com", ".com", ".xy", "a@b.c", "n't'isn't",
    "a.b+c@d-e.fg", "@user", "#tag", "#12", "#1a", "hello", "World", "x-", "\u00e9", "\u00c9.",
    "\u01c5.", "e\u0301", "\u0301", "\u200d", "\u200c", "\u00ad", "\u2060", "\u200b", "\ufeff",
    "\u200e", "\u202e", "\u2028", "\u0085", "\u00a0", "\u3000", "\ufe0f", "\u2019", "\u02bc",
    "\u2018", "\uff07", "\u2010", "\u2011", "\u2013", "\u2026", "\u00b2", "\u0663", "\u2167",
    "\u0130", "\u4e1c", "\u3005", "\u3007", "\U00020000", "\u3042", "\u3044", "\u30a2", "\u30fc",
    "\uff76", "\uff9f", "\u3099", "\u30fb", "\u0e01", "\u0e34", "\u0e3f", "\u0e51", "\u0ea1",
    "\u1000", "\u1780", "\u05e9\u05dc", "\u0633\u0644\u0627\u0645", "\uc11c\uc6b8", "\U0001f44d",
    "\U0001f3fd", "\U0001f469\u200d\U0001f680", "\U0001f1eb", "\U0001f1eb\U0001f1f7",
    "\u2764\ufe0f\u200d", "\U000e0067", "\ue000", "\ufffd", "\uffff", "\U0010ffff",
]  # fmt: skip
BROKEN = [b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\x80", b"\x80"]
contents = st.lists(
    st.sampled_from([*(piece.encode() for piece in PIECES), *BROKEN])
    | st.text(max_size=2).map(str.encode),
    max_size=12,
).map(b"".join)


@hypothesis.given(st.lists(contents, max_size=8))
@hypothesis.settings(deadline=None, max_examples=200)
def test_the_rules_read_character_by_character(batch):
    assert spans(batch) == [Scanner(content).spans() for content in batch]


@hypothesis.given(contents)
@hypothesis.settings(deadline=None, max_examples=100)
def test_tokens_are_in_order_with_blanks_between(content):
    (row,) = spans([content])
    position = 0
    for start, end in [*row, (len(content), len(content))]:
        assert position <= start <= end
        between = content[position:start].decode()
        assert all(unicodedata.category(character)[0] in "ZC" for character in between)
        position = end
    assert all(start < end for start, end in row)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("EU rejects German call.", "EU rejects German call ."),
        ("It isn't so: can't, WON'T, ain\u2019t", "It is n't so : ca n't , WO N'T , ai n\u2019t"),
        ("He's they'd we'll I'm you've we're", "He 's they 'd we 'll I 'm you 've we 're"),
        ("don't've the dogs' n't 's", "do n't 've the dogs ' n't 's"),
        ("O'Brien's rock'n'roll '90s", "O'Brien 's rock'n'roll ' 90s"),
        ("one.Two word... no..", "one . Two word ... no .."),
        ("Mr. Dr. Mrs. St. Jan. word. Ph.D. etc.", "Mr. Dr. Mrs. St. Jan. word . Ph.D. etc."),
        ("aMr. MR.", "aMr . MR ."),
        ("J.F. Kennedy, U.S.A. and U.S's", "J.F. Kennedy , U.S.A. and U.S 's"),
        ("non-U.S. Iraq-U.N.-led x-U. a-b.c.", "non-U.S. Iraq-U.N.-led x-U . a-b.c."),
        ("J.Smith a.m. e.g.this b.this", "J. Smith a.m. e.g. this b . this"),
        ("So do I.\nPlan B.  \r\nC. D", "So do I . Plan B . C. D"),
        ("1,234.5 12:30am 1996-08-22 22/8/1996 v2.0", "1,234.5 12:30am 1996-08-22 22/8/1996 v2.0"),
        ("1, 2. -5 +3% 6-4,6-3 $1.2bn", "1 , 2 . - 5 + 3 % 6-4,6-3 $ 1.2bn"),
        ("1. one\n22. two\n333. 1. x\n4.\n5.x", "1. one 22. two 333 . 1 . x 4 . 5 . x"),
        ("US$5 C$ R2$ AUS$", "US$ 5 C$ R2 $ AUS $"),
        ("--- - well-known- -x R&D & co", "--- - well-known - - x R&D & co"),
        ("(see http://a.b/c_(d).) www.a.b/?q=1!", "( see http://a.b/c_(d ) . ) www.a.b/?q=1 !"),
        ("Amazon.com, bbc.co.uk/news. x.comet", "Amazon.com , bbc.co.uk/news . x . comet"),
        ("<j.o-e@a-b.co.uk> a@b @u_1's #t2, #1", "< j.o-e@a-b.co.uk > a @b @u_1 's #t2 , # 1"),
        ("snake_case __init__ 'q' \"q\"", "snake_case __init__ ' q ' \" q \""),
        ("caf\u0301e \u0301x 1\ufe0f\u20e3", "caf\u0301e \u0301 x 1\ufe0f\u20e3"),
        ("a\u200bb\ufeffc\u200ed\0e\x1bf\u00adg", "a b c d e f\u00adg"),
        ("\u201cq\u201d\u2013\u2026\u2026\u20ac5", "\u201c q \u201d \u2013 \u2026 \u2026 \u20ac 5"),
        ("\u05e9\u05dc\u05dd, \u0645\u0631\u061f", "\u05e9\u05dc\u05dd , \u0645\u0631 \u061f"),
        ("iPod\u0e23\u0e38\u0e48\u0e19\u0e51", "iPod \u0e23\u0e38\u0e48\u0e19 \u0e51"),
        ("\u3089\u30fc\u30e1\u30f3\uff71", "\u3089\u30fc \u30e1\u30f3\uff71"),
        ("", ""),
        (" \t\r\n\u3000\0", ""),
    ],
)  # fmt: skip
def test_exact_examples(text, expected):
    assert split(text) == expected.split(" ") * bool(expected)


def test_words_in_another_encoding_stay_whole():
    assert split(b"M\xfcller's caf\xe9, \xff.") == ["M\xfcller", "'s", "caf\xe9", ",", "\xff", "."]


def test_tokens_of_tokenised_text_are_themselves():
    once = split("Mr. O'Brien didn't, U.N.-wide: 3-1 -- @user (x@y.org) \u20ac5... B.")
    assert split(" ".join(once)) == once


@hypothesis.given(st.lists(contents, min_size=2, max_size=4))
@hypothesis.settings(deadline=None, max_examples=25)
def test_a_text_does_not_depend_on_its_batch(batch):
    assert spans(batch) == [spans([content])[0] for content in batch]


def test_types_and_an_empty_batch():
    for batch in (["a b", ""], []):
        for function in (tokenise, tokenise_graph):
            found = function(tf.constant(batch, tf.string, [len(batch)]))
            assert [part.dtype for part in found] == [tf.string, tf.int32, tf.int32]
            assert all(part.nrows() == len(batch) for part in found)
            assert found.starts.to_list() == [[0, 2], []][: len(batch)]


def test_in_a_pipeline():
    texts = tf.data.Dataset.from_tensor_slices(["isn't", "", "a b c"]).batch(2)
    found = [batch.ends.to_list() for batch in texts.map(tokenise)]
    assert found == [[[2, 5], []], [[1, 3, 5]]]


def test_exported(tmp_path):
    module = tf.Module()
    module.tokenise = tf.function(
        lambda text: {name: part.to_tensor() for name, part in tokenise(text)._asdict().items()},
        input_signature=[TEXTS],
        autograph=False,
    )
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path).tokenise(
        tf.constant([b"caf\xe9 \xf0\x9f\x91\x8d!", b""])
    )
    assert loaded["tokens"].numpy().tolist() == [
        [b"caf\xe9", "\U0001f44d".encode(), b"!"],
        [b""] * 3,
    ]
    assert loaded["starts"].numpy().tolist() == [[0, 5, 9], [0, 0, 0]]
    assert loaded["ends"].numpy().tolist() == [[4, 9, 10], [0, 0, 0]]


@pytest.mark.parametrize("piece", ["a", "a.b+", "aa.", "a@", "\u4e1c", "!", "A. ", "a--", "n'n'"])
def test_long_texts_take_no_more_than_their_length(piece):
    """What is read again for each token would take hours at this length."""
    content = (piece * 100_000).encode()
    (row,) = spans([content])
    assert row[-1][1] == len(content.rstrip())
