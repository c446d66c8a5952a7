"""What a sentence says, in neither language: `english` and `italian` each put it into words."""

from dataclasses import dataclass, replace
from typing import TypeAlias

from rnnapps.data.datasets.sample_translation.lexicon import (
    NAMES,
    Adjective,
    Adverbial,
    Modal,
    Noun,
    Verb,
)


@dataclass(frozen=True)
class Pronoun:
    """A personal pronoun; only those of the third person singular tell the gender."""

    subject: str
    object: str
    person: int
    gender: str = ""

    @property
    def plural(self) -> bool:
        """Whether it stands for several."""
        return self.person > 2


ME, YOU = Pronoun("I", "me", 0), Pronoun("you", "you", 1)
HIM, HER = Pronoun("he", "him", 2, "m"), Pronoun("she", "her", 2, "f")
US, THEM = Pronoun("we", "us", 3), Pronoun("they", "them", 4)


@dataclass(frozen=True)
class It:
    """A thing, or things, named before: it, them."""

    gender: str
    plural: bool = False
    person = 2


@dataclass(frozen=True)
class Gap:
    """Who or what is clear without a word, as in "the man who waits" or "she sings and dances"."""

    person: int
    gender: str
    plural: bool


@dataclass(frozen=True)
class Name:
    """A person's name, the same in both languages."""

    text: str
    person = 2
    plural = False

    @property
    def gender(self) -> str:
        """Men's or women's."""
        return NAMES[self.text]


@dataclass(frozen=True)
class Both:
    """Two persons."""

    first: "Name | NounPhrase"
    second: "Name | NounPhrase"
    person = 4
    plural = True

    @property
    def gender(self) -> str:
        """Feminine of women only."""
        return "f" if self.first.gender == self.second.gender == "f" else "m"


@dataclass(frozen=True)
class NounPhrase:
    """A noun and what belongs to it.

    Attributes:
        noun: The noun.
        determiner: the, a, this, a possessive or a number; `"all"` for what is said of its kind
            ("I like apples"); nothing ("She drinks water").
        plural: Whether there are several.
        adjectives: In the English order, one that stands before the Italian noun at most.
        relative: A clause that lacks this noun, where it has a `Gap`.
    """

    noun: Noun
    determiner: str = "the"
    plural: bool = False
    adjectives: tuple[Adjective, ...] = ()
    relative: "Clause | None" = None

    @property
    def gender(self) -> str:
        """The Italian noun's."""
        return self.noun.gender

    @property
    def person(self) -> int:
        """The third."""
        return 4 if self.plural else 2


Phrase: TypeAlias = Pronoun | It | Gap | Name | Both | NounPhrase


@dataclass(frozen=True)
class At:
    """Where a thing is: in, on or under another."""

    preposition: str
    place: NounPhrase


@dataclass(frozen=True)
class Action:
    """A verb with its objects; an object may be translated along with its verb."""

    verb: Verb
    object: Phrase | Adverbial | None = None
    recipient: Phrase | None = None
    place: Adverbial | None = None
    companion: Phrase | None = None
    times: tuple[Adverbial, ...] = ()


@dataclass(frozen=True)
class Be:
    """To be something or somewhere."""

    predicate: Adjective | Adverbial | At | NounPhrase


@dataclass(frozen=True)
class Feel:
    """To be hungry and the like, which Italian has."""

    what: Adverbial


@dataclass(frozen=True)
class Have:
    """To have something."""

    object: NounPhrase


@dataclass(frozen=True)
class Need:
    """To need something: "avere bisogno di"."""

    object: NounPhrase


@dataclass(frozen=True)
class Like:
    """To like something, or doing it: "piacere", whose subject is what is liked."""

    what: NounPhrase | Action


@dataclass(frozen=True)
class Report:
    """To say or know that something is the case."""

    verb: Modal
    clause: "Clause"


@dataclass(frozen=True)
class Clause:
    """A subject and what it does.

    Attributes:
        subject: Who or what.
        action: What it does or is.
        tense: `"present"`, `"progressive"`, `"past"` or `"future"`.
        modal: A verb before that of an `Action`; the tense is then the present.
        frequency: How often.
        negated: Whether it is denied.
    """

    subject: Phrase
    action: Action | Be | Feel | Have | Need | Like | Report
    tense: str = "present"
    modal: Modal | None = None
    frequency: Adverbial | None = None
    negated: bool = False

    def without_subject(self) -> "Clause":
        """The same, its subject being clear."""
        subject = self.subject
        return replace(self, subject=Gap(subject.person, subject.gender, subject.plural))


@dataclass(frozen=True)
class There:
    """There is something somewhere."""

    what: NounPhrase
    place: Adverbial | At


@dataclass(frozen=True)
class Joined:
    """Two clauses; of when and if, the second is the condition and comes first."""

    word: str
    first: "Clause | Joined"
    second: "Clause | Joined"

    @property
    def has_comma(self) -> bool:
        """Whether the first ends with one: before but, and before another subject."""
        return self.word == "but" or self.word == "and" and not self._goes_on

    @property
    def _goes_on(self) -> bool:
        return isinstance(self.second, Clause) and isinstance(self.second.subject, Gap)


@dataclass(frozen=True)
class Question:
    """A question; `word` is where, when, why, what (its object is a `Gap`) or who.

    Of who, either the subject or the object is a `Gap`.
    """

    clause: Clause | There
    word: str = ""


Sentence: TypeAlias = Clause | There | Joined | Question
