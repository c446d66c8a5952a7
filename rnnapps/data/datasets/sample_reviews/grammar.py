"""A small grammar of short reviews in which structure, not vocabulary, decides the label.

Every production is a template. A slot in braces is another symbol of the grammar or a list of
words, and a signed slot says how its polarity relates to the polarity of the whole:

- ``{claim+}`` has the polarity of the template it stands in,
- ``{claim-}`` has the opposite one.

Signs multiply on the way down, so the label of a review is the product of the signs above any
signed word, times that word's own polarity. A review of either label is therefore written with
words of praise about as often as with words of blame, and no word tells the two apart. The kinds
of review, and what each means for the label:

========== ============================================================= =====================
kind       example                                                       label is that of
========== ============================================================= =====================
assertion  The food is tasty and the staff is really helpful.            each claim
negation   There is nothing to enjoy in this novel.                      the denied words' opposite
contrast   The bar was charming at first, but the waiters were rude.     the clause that wins
report     I was told that the plot is dull. I was told wrong.           the claim, or its opposite
                                                                         where it is rejected
change     Once shabby, the hotel is now lovely.                         what holds now
========== ============================================================= =====================

- *Assertion.* One to three claims in a row, bare or introduced by words that leave them standing
  ("it is true that", "everybody would say that", "all of us loved", "found plenty to like").
  Words that look like a denial are among them: "nothing but a joy", "nobody can deny that",
  "I have never seen such a good film", "who would not love this book?".
- *Negation.* The denial stands before the denied words, often far before ("nothing to",
  "neither … nor", "nobody would say that … or that", "it would be wrong to say that", "how
  could anyone"), or after them ("I looked for something to fault and found nothing").
- *Contrast.* What follows "but" or "still" outweighs what came before; a clause that begins with
  "although" or "even if" is outweighed wherever it stands.
- *Report.* Somebody's opinion is quoted, and the last words accept or reject all of it.
- *Change.* What something used to be, once was or no longer is counts against what it is now.

A claim inside any of these may itself be denied ("the soup isn't bland"), so that denials cancel:
"Nobody would say that the soup isn't tasty or that the service is bad." is positive.

The module needs only the standard library.
"""

import random
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

LABELS = ("negative", "positive")
SPLIT_SIZES = {"train": 4000, "dev": 500, "test": 1000}

# Kept for showing a trained model something it has never seen.
HELD_OUT = (
    "This café is great, the staff is really friendly and the coffee is delicious",
    "There is nothing to like in this movie.",
)

SLOT = re.compile(r"\{(\w+)([+-]?)\}")

GRAMMAR = {
    "review": (
        *("{assertion+}",) * 7,
        *("{negation+}",) * 6,
        *("{contrast+}",) * 4,
        *("{report+}",) * 2,
        *("{change+}",) * 2,
    ),
    "assertion": (
        *("{claim+}",) * 2,
        *("{claim+} and {claim+}",) * 2,
        *("{plain+}, {plain+} and {plain+}",) * 4,
        *("a {truly}{adjective+} {noun}",) * 2,
        "{adjective+} {noun}",
        "what a {adjective+} {noun}",
        *("{it} {is} a {delight+}",) * 2,
        "{it} {is} nothing but a {delight+}",
        "I have never {seen} such a {adjective+} {noun}",
        *("I {loved+} {it}",) * 2,
        "I {loved+} {it}: {claim+} and {claim+}",
        "all of us {loved+} {it}",
        *("there is {plenty} to {like+} in this {noun}",) * 2,
        "there is {plenty} to {like+} and {plenty} to {like+} in this {noun}",
        "I found {plenty} to {like+} in this {noun}",
        "I looked for something to {like+} in this {noun} and found {plenty}",
        "who {would_not} {like+} this {noun}?",
        "I would say that {claim+}",
        "everybody would say that {claim+} and that {claim+}",
        "it would be right to say that {plain+} and that {plain+}",
        "it is true that {claim+} and that {claim+}",
        "nobody can deny that {claim+}",
        "everybody would call this {noun} {adjective+}",
    ),
    "negation": (
        *("there is nothing to {like-} in this {noun}",) * 2,
        "there is nothing to {like-} and nothing to {like-} in this {noun}",
        *("there {is}n't {anything} to {like-} in this {noun}",) * 2,
        "I {could_not} find {anything} to {like-} in this {noun}",
        "I looked for something to {like-} in this {noun} and found nothing",
        "how could anyone {like-} this {noun}?",
        "I {did_not} {like-} {it}",
        *("none of us {loved-} {it}",) * 2,
        *("I never {loved-} {it}",) * 2,
        "not a {truly}{adjective-} {noun}",
        *("{it} {is} no {delight-}",) * 2,
        "{it} {is} anything but a {delight-}",
        "{it} {is} anything but {adjective-}",
        "{subject} {is} neither {adjective-} nor {adjective-}",
        "neither {aspect} nor {aspect} {was} {good-}",
        *("{denial+}",) * 2,
        "I {would_not} say that {claim-}",
        "nobody would say that {claim-} or that {claim-}",
        "it would be wrong to say that {plain-} and that {plain-}",
        "it would be wrong to say that {plain-}, {plain-} and {plain-}",
        "it isn't true that {claim-} or that {claim-}",
        "nobody would call this {noun} {adjective-}",
    ),
    "contrast": (
        *("{claim-}, but {claim+}",) * 2,
        "{plain-} at first, but {claim+}",
        "{subject} {was} {adjective-} at first, but {adjective+} in the end",
        "{it} seemed {adjective-} at first, but {claim+}",
        "I {loved-} {it} at first, but {claim+}",
        "{claim-} and {claim-}, but in the end I {loved+} {it}",
        "although {claim-}, {claim+}",
        "{claim+}, although {claim-}",
        "{claim+}, even if {claim-}",
        "{claim-}. Still, {claim+}",
    ),
    "report": (
        "they told me that {plain-} and that {plain-}, but they were wrong",
        "they told me that {plain+} and that {plain+}, and they were right",
        "my friends said that {plain-}, {plain-} and {plain-}. They were wrong",
        "my friends said that {plain+}, {plain+} and {plain+}. They were right",
        "I was told that {claim-}. I was told wrong",
        "I was told that {claim+}. I was told right",
        "I expected a {adjective-} {noun}, and I was wrong",
        "I expected a {adjective+} {noun}, and I was right",
    ),
    "change": (
        "{subject} used to be {adjective-}, and now {pronoun} {is_now} {adjective+}",
        "once {adjective-}, {subject} {is_now} now {adjective+}",
        "{subject} {is_now} {adjective+} now, but {was} once {adjective-}",
        "{subject} {is_now} no longer {adjective-}",
        "{subject} {is_now} still {adjective+}",
    ),
    "claim": (*("{plain+}",) * 3, "{denial+}"),
    "plain": (*("{subject} {is} {so}{adjective+}",) * 3, "{subject} {is} very {fitting+}"),
    "denial": (
        *("{subject} {is_not} {so}{adjective-}",) * 2,
        "{subject} {is} not {adjective-} at all",
        "{subject} {is} never {adjective-}",
        "{subject} {is} far from {adjective-}",
    ),
}

# Signed words: praise first, then blame, as many of the one as of the other.
PRAISE_AND_BLAME = {
    "good": (
        ("good", "great", "wonderful", "excellent", "lovely", "superb"),
        ("bad", "poor", "terrible", "awful", "dreadful", "horrible"),
    ),
    "tale": (
        ("clever", "gripping", "moving", "funny", "original"),
        ("boring", "dull", "silly", "tedious", "predictable"),
    ),
    "food": (
        ("delicious", "tasty", "fresh", "flavourful"),
        ("bland", "stale", "tasteless", "unpleasant"),
    ),
    "people": (
        ("friendly", "helpful", "polite", "attentive"),
        ("rude", "unfriendly", "careless", "grumpy"),
    ),
    "place": (
        ("cosy", "charming", "clean", "comfortable"),
        ("noisy", "dirty", "shabby", "gloomy"),
    ),
    "like": (
        ("like", "love", "enjoy", "admire", "praise", "recommend"),
        ("dislike", "hate", "fault", "criticise", "loathe", "detest"),
    ),
    "loved": (
        ("loved", "liked", "enjoyed", "admired"),
        ("hated", "disliked", "detested", "loathed"),
    ),
    "delight": (
        ("delight", "joy", "treat", "triumph", "success"),
        ("mess", "bore", "failure", "disaster", "disappointment"),
    ),
}

NEUTRAL = {
    "plenty": ("plenty", "a lot", "more than enough"),
    "anything": ("anything", "a thing", "much"),
    "so": ("", "", "really ", "truly ", "so "),
    "truly": ("", "really ", "truly "),
    "would_not": ("would not", "wouldn't"),
    "could_not": ("could not", "couldn't"),
    "did_not": ("did not", "didn't"),
}

# Sentences before the review proper that say nothing about its label.
OPENINGS = {
    "seen": (
        "I saw it last week with my sister",
        "we watched it on a Sunday evening",
        "I went with a colleague",
    ),
    "read": (
        "I read it on the train",
        "my brother gave it to me last summer",
        "it took me two evenings",
    ),
    "visited": (
        "we stopped here after work",
        "I came here on a Sunday with two friends",
        "we were a party of five",
    ),
}

ENDINGS = (*(".",) * 7, "!", "", "")


class Subject(NamedTuple):
    """What an adjective is said of; `kind` names the adjectives that suit it."""

    phrase: str
    kind: str
    plural: bool = False


class Topic(NamedTuple):
    """What a review is about; `seen` is the verb that goes with it."""

    noun: str
    kind: str
    seen: str
    aspects: tuple[Subject, ...]

    @property
    def names(self) -> tuple[Subject, ...]:
        """The ways to speak of the thing itself."""
        return tuple(Subject(f"{the} {self.noun}", self.kind) for the in ("this", "the"))


_STORY = (
    Subject("the story", "tale"),
    Subject("the plot", "tale"),
    Subject("the ending", "tale"),
    Subject("the characters", "tale", plural=True),
)
_SCREEN = (
    *_STORY,
    Subject("the acting", "tale"),
    Subject("the music", "tale"),
    Subject("the jokes", "tale", plural=True),
)
_TABLE = (
    Subject("the staff", "people"),
    Subject("the service", "people"),
    Subject("the waiters", "people", plural=True),
    Subject("the food", "food"),
    Subject("the coffee", "food"),
)
TOPICS = (
    Topic("film", "tale", "seen", _SCREEN),
    Topic("movie", "tale", "seen", _SCREEN),
    Topic("play", "tale", "seen", _SCREEN),
    Topic("book", "tale", "read", _STORY),
    Topic("novel", "tale", "read", _STORY),
    Topic("café", "place", "visited", (*_TABLE, Subject("the cakes", "food", plural=True))),
    Topic("restaurant", "place", "visited", (*_TABLE, Subject("the soup", "food"))),
    Topic("bar", "place", "visited", (*_TABLE, Subject("the terrace", "place"))),
    Topic(
        "hotel",
        "place",
        "visited",
        (
            Subject("the staff", "people"),
            Subject("the service", "people"),
            Subject("the breakfast", "food"),
            Subject("the rooms", "place", plural=True),
            Subject("the lobby", "place"),
        ),
    ),
)


class Review(NamedTuple):
    """One generated review; `kind` is the symbol it was derived from."""

    text: str
    label: str
    kind: str


def reviews() -> Iterator[Review]:
    """Yields reviews without end, the same ones in the same order on every machine.

    Labels alternate. No text comes twice, and none of `HELD_OUT` comes at all; letter case and
    punctuation do not make a text another one.

    Example:

    >>> review = next(reviews())
    >>> print(f"{review.label}: {review.text}")
    negative: The rooms were gloomy, the service was really unfriendly and the staff was so poor.
    """
    rng = random.Random("rnnapps sample reviews 1.0.0")
    seen = {_words(text) for text in HELD_OUT}
    label = 0
    while True:
        review = _Writer(rng).review(LABELS[label])
        words = _words(review.text)
        if words not in seen:
            seen.add(words)
            label = 1 - label
            yield review


def terminals(slot: str, sign: int, topic: Topic, subject: Subject, past: bool) -> tuple[str, ...]:
    """Lists the words that may fill a slot which is no symbol of `GRAMMAR`.

    Args:
        slot: Name of the slot.
        sign: Polarity asked for, 1 or -1; unsigned slots ignore it.
        topic: What the review is about.
        subject: What the adjectives and verbs of this template are said of.
        past: Whether the review is told in the past tense.

    Returns:
        The choices, of equal probability.
    """
    polarity = 0 if sign > 0 else 1
    was = "were" if subject.plural else "was"
    is_now = "are" if subject.plural else "is"
    verb = was if past else is_now
    match slot:
        case "adjective":
            return PRAISE_AND_BLAME["good"][polarity] + PRAISE_AND_BLAME[subject.kind][polarity]
        case "fitting":
            return PRAISE_AND_BLAME[subject.kind][polarity]
        case "subject" | "it":
            return (subject.phrase,)
        case "pronoun":
            return ("they" if subject.plural else "it",)
        case "is":
            return (verb,)
        case "is_not":
            return (f"{verb} not", f"{verb}n't")
        case "was":
            return (was,)
        case "is_now":
            return (is_now,)
        case "noun":
            return (topic.noun,)
        case "seen":
            return (topic.seen,)
        case "aspect":
            return tuple(aspect.phrase for aspect in topic.aspects if not aspect.plural)
    if slot in PRAISE_AND_BLAME:
        return PRAISE_AND_BLAME[slot][polarity]
    return NEUTRAL[slot]


class _Writer:
    """Writes one review: its topic and tense stay the same, and no word of opinion comes twice."""

    def __init__(self, rng: random.Random):
        self._rng = rng
        self._used = set()

    def review(self, label: str) -> Review:
        kind = SLOT.match(self._choose(GRAMMAR["review"]))[1]
        # A place changes with the years; a film or a book does not.
        topics = [topic for topic in TOPICS if kind != "change" or topic.seen == "visited"]
        self._topic = self._choose(topics)
        self._name = self._choose(self._topic.names)
        self._past = self._chance(0.5)
        self._subjects = sorted(self._topic.aspects, key=lambda _: self._rng.random())
        if self._chance(0.5):
            self._subjects.insert(0, self._name)

        text = self._expand(kind, 1 if label == "positive" else -1)
        if not text.endswith("?"):
            text += self._choose(ENDINGS)
        if self._chance(0.15):
            text = f"{self._choose(OPENINGS[self._topic.seen])}. {text}"
        text = re.sub(r"\ba (?=[aeiou])", "an ", text)
        if self._chance(0.9):
            text = re.sub(r"(^|[.?] )(\w)", lambda match: match[1] + match[2].upper(), text)
        return Review(text, label, kind)

    def _expand(self, symbol: str, sign: int) -> str:
        template = self._choose(GRAMMAR[symbol])
        subject = self._subject(template)

        def fill(slot: re.Match) -> str:
            name, slot_sign = slot[1], -sign if slot[2] == "-" else sign
            if name in GRAMMAR:
                return self._expand(name, slot_sign)
            return self._choose_new(terminals(name, slot_sign, self._topic, subject, self._past))

        return SLOT.sub(fill, template)

    def _subject(self, template: str) -> Subject:
        if "{subject}" in template:
            return self._subjects.pop(0)
        if "{it}" in template and self._name in self._subjects:
            self._subjects.remove(self._name)
        return self._name

    def _choose_new(self, words: tuple[str, ...]) -> str:
        word = self._choose([word for word in words if word not in self._used] or words)
        self._used.add(word)
        return word

    def _choose(self, options: Sequence):
        # Only `random()` is promised to give the same numbers in every version of Python.
        return options[int(self._rng.random() * len(options))]

    def _chance(self, probability: float) -> bool:
        return self._rng.random() < probability


def _words(text: str) -> str:
    return " ".join(re.findall(r"[\w']+", text.casefold()))
