"""A small synchronous grammar of English and Italian: a sentence and its only translation.

The grammar draws what a sentence says (`meaning`), of words that go together (`lexicon`), and puts
it into words twice (`english`, `italian`). What a translator has to learn is what the two do
differently:

====================================== =======================================
English                                Italian
====================================== =======================================
I know you.                            Ti conosco.
Did she see the film?                  Ha visto il film?
Does Marco want to see her?            Marco vuole vederla?
My sister is tired.                    Mia sorella è stanca.
Anna likes the red hats.               Ad Anna piacciono i cappelli rossi.
We are waiting for the train.          Stiamo aspettando il treno.
He never plays football.               Non gioca mai a calcio.
He bought a watch, but he lost it.     Ha comprato un orologio, ma l'ha perso.
I found the keys and gave them to her. Ho trovato le chiavi e gliele ho date.
When I arrive, I will call you.        Quando arriverò, ti chiamerò.
====================================== =======================================

What English leaves open and Italian must say is not drawn, so that an English sentence has one
translation: "you" is one friend (tu); an adjective or participle that shows a gender is only said
of whom the English shows to be a man or a woman; "them" is an object only where it stands for
things named before. Pronouns are left out as subjects, clitics stand before a finite verb and
behind an infinitive.

Sentences have from 2 to 25 words, about as many in each of the `BANDS` in every split. The module
needs only the standard library.
"""

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from rnnapps.data.datasets.sample_translation import english, italian
from rnnapps.data.datasets.sample_translation.lexicon import (
    ADJECTIVES,
    CAN,
    FIXED,
    FREQUENCIES,
    GAMES,
    HAVE_TO,
    HAVING,
    HOPE,
    HOURS,
    KNOW,
    LANGUAGES,
    MOODS,
    NAMES,
    NOUNS,
    NUMBERS,
    PLACES,
    POSSESSIVES,
    SAY,
    STATES,
    TIMES,
    VERBS,
    WANT,
    Adjective,
    Adverbial,
    Modal,
    Noun,
    Verb,
)
from rnnapps.data.datasets.sample_translation.meaning import (
    HER,
    HIM,
    ME,
    THEM,
    US,
    YOU,
    Action,
    At,
    Be,
    Both,
    Clause,
    Feel,
    Gap,
    Have,
    It,
    Joined,
    Like,
    Name,
    Need,
    NounPhrase,
    Phrase,
    Pronoun,
    Question,
    Report,
    Sentence,
    There,
)

SPLIT_SIZES = {"train": 10_000, "dev": 500, "test": 1_000}

# English words a sentence, from and to, and how many clauses are likely to have as many.
BANDS = {
    (2, 5): (1,),
    (6, 10): (1, 1, 1, 2),
    (11, 15): (1, 2, 2, 2, 2),
    (16, 20): (2, 3, 3),
    (21, 25): (3, 4),
}

# A word of dev or test stands in so many sentences of train at least.
KNOWN_FROM = 20

# Kept for showing a trained model something it has never seen.
HELD_OUT = ("Do you want to dance with me?", "Vuoi ballare con me?")

PRONOUNS = (ME, YOU, HIM, HER, US, THEM)
OWN = {ME: "my", YOU: "your", HIM: "his", HER: "her", US: "our", THEM: "their"}

# What goes together: what one can do, hopes to do and has to do, is kept from by duties, finds an
# effort, does to an end and enjoys; what is a condition of something else, keeps one from it, and
# is done when in some state.
FAVOURS = ("help", "come", "go", "leave", "open", "buy", "see", "call", "give")
HOPES = ("see", "buy", "find", "go", "come", "return", "leave", "call")
TASKS = (
    *("work", "read", "write", "study", "speak", "open", "clean", "take", "buy", "help", "call"),
    *("give", "go", "come", "leave", "return", "find"),
)
DUTIES = ("come", "go", "leave", "help", "call")
EFFORTS = ("work", "dance", "sing", "swim", "go", "come", "clean", "read", "play", "talk")
MEANS = ("go", "come", "buy", "take", "look for", "study", "call", "work", "leave", "talk")
CONDITIONS = ("arrive", "come", "return", "leave", "go", "call", "help", "see")
JOYS = ("find", "buy", "see", "dance", "sing", "swim", "eat", "read", "talk", "return")
BURDENS = ("tired", "ill", "sad", "hungry", "thirsty", "in a hurry")
HABITS = {
    "hungry": ("eat",),
    "thirsty": ("drink",),
    "in a hurry": ("take",),
    "happy": ("dance", "sing", "swim", "play"),
    "sad": ("read", "sing", "go"),
    "tired": ("sleep", "read", "drink"),
    "ill": ("sleep", "drink", "read"),
}
# Where a thing is, and the kind of thing that it is in, on or under.
BEARS = {"in": "holds", "on": "bears", "under": "bears"}


class Pair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str


def pair(sentence: Sentence) -> Pair:
    """Puts a meaning into both languages.

    Args:
        sentence: What is said.

    Returns:
        The English and the Italian sentence.

    Example:
    >>> pair(Clause(Name("Anna"), Be(MOODS["tired"])))
    Pair(source='Anna is tired.', target='Anna è stanca.')
    """
    return Pair(english.text(sentence), italian.text(sentence))


def splits() -> dict[str, list[Pair]]:
    """Generates the splits, the same ones on every machine.

    No source comes twice, letter case and punctuation aside, and `HELD_OUT` does not come at all.
    Every word of dev and test stands in at least `KNOWN_FROM` sentences of train.

    Returns:
        The pairs of `train`, `dev` and `test`, as many as `SPLIT_SIZES` says.

    Example:
    >>> {split: len(pairs) for split, pairs in splits().items()}
    {'train': 10000, 'dev': 500, 'test': 1000}
    """
    writer, bands = Writer(random.Random("rnnapps sample translation 1.0.0")), list(BANDS)
    seen = {_key(HELD_OUT[0])}
    counts: Counter[str] = Counter()
    result: dict[str, list[Pair]] = {}
    for split, size in SPLIT_SIZES.items():
        pairs = result[split] = []
        while len(pairs) < size:
            drawn = writer.pair(bands[len(pairs) % len(bands)])
            key, used = _key(drawn.source), words(drawn)
            is_known = split == "train" or all(counts[word] >= KNOWN_FROM for word in used)
            if key not in seen and is_known:
                seen.add(key)
                pairs.append(drawn)
                if split == "train":
                    counts.update(used)
    return result


def words(pair: Pair) -> set[str]:
    """The words of both sides, each marked by its side.

    Args:
        pair: A sentence and its translation.

    Returns:
        Words such as `"en:dance"` and `"it:ballare"`, in lower case.
    """
    return {
        f"{side}:{word}"
        for side, text in zip(("en", "it"), pair, strict=True)
        for word in re.findall(r"\w+", text.lower())
    }


def _key(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


# Who or what is asked for: masculine, as chi and che cosa are.
_ASKED = Gap(2, "m", False)


def _pronoun_for(subject: Phrase) -> Phrase:
    """What stands for a subject in the next clause."""
    if isinstance(subject, Pronoun):
        return subject
    if subject.plural:
        return THEM
    return HER if subject.gender == "f" else HIM


class Writer:
    """Draws sentences whose words go together; in one, no word is drawn twice without need.

    Args:
        rng: The source of chance.
    """

    def __init__(self, rng: random.Random):
        self._rng = rng
        self._drawn: set[str | Noun | Verb | Adverbial] = set()

    def pair(self, band: tuple[int, int]) -> Pair:
        """Draws a pair.

        Args:
            band: One of `BANDS`: how many words the source may have.

        Returns:
            A sentence, which may have come before, and its translation.
        """
        while True:
            self._drawn.clear()
            sentence = self._sentence(self._choose(BANDS[band]))
            source = english.text(sentence)
            if band[0] <= source.count(" ") + 1 <= band[1]:
                return Pair(source, italian.text(sentence))

    def _sentence(self, num_clauses: int) -> Sentence:
        if num_clauses > 1:
            return self._joined(num_clauses)
        return self._question() if self._chance(0.45) else self._single()

    # Sentences

    def _single(self) -> Sentence:
        others = (self._about_thing, self._where_thing, self._there)
        return self._choose((self._clause,) * 9 + others)()

    def _question(self) -> Question:
        asks = (self._ask_who, self._ask_what, self._ask_why, self._ask_where, self._ask_when)
        return self._choose((self._ask_whether,) * 5 + (self._invite,) * 4 + asks)()

    def _invite(self) -> Question:
        """Whether somebody wants to do something with others."""
        subject = self._choose((YOU, YOU, YOU, YOU, self._asked()))
        verbs = [
            verb for verb in VERBS.values() if "with" in verb.places and "infinitive" in verb.tenses
        ]
        verb = self._new([*verbs, *FIXED.values()])
        action = self._action(subject, verb, "infinitive", times=self._chance(0.2))
        if not action.companion:
            action = replace(action, companion=self._other(subject, PRONOUNS))
        return Question(Clause(subject, action, modal=WANT))

    def _ask_whether(self) -> Question:
        if self._chance(0.15):
            clause = self._choose((self._there, self._about_thing, self._where_thing))()
            return Question(clause if isinstance(clause, There) else replace(clause, negated=False))
        subject = self._asked()
        if self._chance(0.2):
            return Question(self._modal(subject, self._choose((WANT, CAN)), negated=False))
        return Question(self._clause(subject, is_plain=True))

    def _ask_where(self) -> Question:
        if self._chance(0.3):
            thing = self._noun_phrase(self._noun("carried"), ("the", "own"), False, False)
            return Question(Clause(thing, Be(Adverbial("", ""))), "where")
        verbs = ("work", "go", "dance", "swim", "study", "sleep")
        return Question(self._short(self._asked(), self._choose(verbs)), "where")

    def _ask_when(self) -> Question:
        verbs = ("arrive", "leave", "return", "come")
        return Question(self._short(self._asked(), self._choose(verbs), ("past", "future")), "when")

    def _ask_why(self) -> Question:
        return Question(self._clause(self._asked(), is_plain=self._chance(0.7)), "why")

    def _ask_what(self) -> Question:
        verbs = ("eat", "drink", "read", "buy", "write", "look for")
        return Question(self._short(self._asked(), self._choose(verbs), given=_ASKED), "what")

    def _ask_who(self) -> Question:
        if self._chance(0.5):
            return Question(self._clause(_ASKED, is_plain=True), "who")
        verbs = ("help", "wait for", "see", "call")
        return Question(self._short(self._asked(), self._choose(verbs), given=_ASKED), "who")

    def _short(
        self, subject: Phrase, name: str, only: Sequence[str] = (), given: Gap | None = None
    ) -> Clause:
        """A clause without adverbials, of which one is perhaps asked for."""
        verb = FIXED[name] if name == "study" else VERBS[name]
        action = Action(verb, self._choose(LANGUAGES) if name == "study" else given)
        tenses = [t for t in sorted(verb.tenses - {"infinitive"}) if not only or t in only]
        if verb.auxiliary == "essere" and not subject.gender:
            tenses = [tense for tense in tenses if tense != "past"]
        if "infinitive" in verb.tenses and (not tenses or self._chance(0.3)):
            return Clause(subject, action, modal=WANT)
        return Clause(subject, action, self._choose(tenses))

    def _joined(self, num_clauses: int) -> Joined | Clause:
        first = self._joint(self._subject())
        if num_clauses == 2:
            return first
        # Their subject is named, since it is another one.
        last = self._clause(self._person()) if num_clauses == 3 else self._joint(self._person())
        has_but = "but" in (getattr(first, "word", ""), getattr(last, "word", ""))
        return Joined("and" if has_but else "but", first, last)

    def _joint(self, subject: Phrase) -> Joined | Clause:
        joints = (self._reason, self._contrast, self._sequence, self._it)
        joints += (self._condition, self._habit, self._report, self._pairing)
        return self._choose(joints)(subject)

    def _reason(self, subject: Phrase) -> Joined:
        again = _pronoun_for(subject)
        kind = self._choose(("hindered", "hindered", "willing", "willing", "moved"))
        if kind == "hindered":
            modal = self._choose((WANT, CAN))
            first = self._modal(subject, modal, True, EFFORTS if modal == WANT else DUTIES)
            kind = self._choose(("state", "have to", "other"))
            if kind == "have to":
                second = self._modal(again, HAVE_TO)
            else:
                second = self._state(again if kind == "state" else self._person(), BURDENS)
        elif kind == "willing":
            first = self._deed(subject, negated=False, often=False, names=MEANS)
            wants = self._chance(0.75)
            second = self._modal(again, WANT, False) if wants else self._needing(again)
        else:
            mood = self._choose(("happy", "sad"))
            first, is_loss = self._state(subject, (mood,)), mood == "sad" and self._chance(0.4)
            negated, names = (False, ("lose",)) if is_loss else (mood == "sad", JOYS)
            second = self._deed(again, "past", negated=negated, names=names)
        return Joined("because", first, second)

    def _contrast(self, subject: Phrase) -> Joined:
        again = _pronoun_for(subject)
        first = self._deed(subject, negated=self._chance(0.2), often=False)
        kind = self._choose(("modal", "state", "deed"))
        if kind == "modal":
            return Joined("but", first, self._modal(again, self._choose((WANT, CAN)), negated=True))
        if kind == "state":
            return Joined("but", first, self._state(again))
        second = self._deed(again, first.tense, negated=not first.negated, often=False)
        return Joined("but", first, second)

    def _sequence(self, subject: Phrase) -> Joined:
        tense = self._choose(("present", "past", "past", "future"))
        first = self._deed(subject, tense, negated=False, often=False)
        second = self._deed(subject, tense, negated=False, often=False)
        return Joined("and", first, second.without_subject())

    def _pairing(self, subject: Phrase) -> Joined:
        """What two persons do."""
        if isinstance(subject, Pronoun):
            subject = self._person()
        tense = self._choose(("present", "progressive", "progressive", "past", "future"))
        negated = False if tense == "progressive" else None
        times = False if tense == "progressive" else None
        first = self._deed(subject, tense, negated=negated, times=times)
        second = self._deed(self._person(), tense, negated=negated, times=times)
        return Joined("while" if tense == "progressive" else "but", first, second)

    def _it(self, subject: Phrase) -> Joined:
        """Something was got, and then: "Anna bought a watch and gave it to me"."""
        noun = self._noun("carried")
        got = [verb for verb in (VERBS["buy"], VERBS["find"]) if noun.kinds & verb.objects]
        things = self._noun_phrase(noun, ("the", "a", "a", "number", "this"), has_relative=False)
        first = Clause(subject, Action(self._choose(got), things), "past")
        then = [VERBS[name] for name in ("lose", "give", "read", "open")]
        verb = self._choose([verb for verb in then if noun.kinds & verb.objects])
        receiver = self._other(subject) if verb.base == "give" else None
        second = Clause(subject, Action(verb, It(things.gender, things.plural), receiver), "past")
        is_lost = verb.base == "lose"
        if not is_lost and self._chance(0.6):
            return Joined("and", first, second.without_subject())
        return Joined(
            "but", first, replace(second, subject=_pronoun_for(subject), negated=not is_lost)
        )

    def _condition(self, subject: Phrase) -> Joined:
        main = self._deed(subject, "future", often=False, times=False)
        mine = {ME, US} if subject in (ME, US) else {subject}
        others = [person for person in (ME, YOU, US) if person not in mine]
        if subject in (HIM, HER, THEM):
            # Without a subject, the third person is whoever was named last: nobody else may be.
            other = self._choose([*others, subject, subject])
            verb = self._verb(other, "future", CONDITIONS[:-3])
            action = replace(self._action(other, verb, "future", times=False), companion=None)
        else:
            other = self._choose([*others, self._person(), self._person()])
            verb = self._verb(other, "future", CONDITIONS)
            action = self._action(other, verb, "future", times=False)
        return Joined(self._choose(("when", "if")), main, Clause(other, action, "future"))

    def _habit(self, subject: Phrase) -> Joined:
        """What somebody does when in some state."""
        state = self._state(subject, tuple(HABITS))
        what = state.action.what if isinstance(state.action, Feel) else state.action.predicate
        again, names = _pronoun_for(subject), HABITS[what.english]
        main = self._deed(again, "present", negated=False, often=False, times=False, names=names)
        return Joined("when", main, state)

    def _report(self, subject: Phrase) -> Clause:
        if subject in (YOU, THEM):
            subject = self._person()
        others = [person for person in (ME, YOU, US) if person != subject]
        if subject not in (ME, US) and self._chance(0.5):
            told = self._choose([*others, _pronoun_for(subject), self._person()])
            return Clause(subject, Report(SAY, self._clause(told)))
        told = self._choose([*others, self._person(), self._person()])
        return Clause(subject, Report(KNOW, self._clause(told)))

    # Clauses

    def _clause(self, subject: Phrase | None = None, is_plain: bool = False) -> Clause:
        """Any clause; a plain one is neither negated nor says how often."""
        subject = subject or self._subject()
        negated, often = (False, False) if is_plain else (None, None)
        kind = self._choose(
            ("deed",) * 8
            + ("modal",) * 5
            + ("state", "state", "know", "have", "need", "like", "like", "be")
        )
        if kind == "modal":
            modals = (WANT, WANT, CAN, HAVE_TO, HAVE_TO, HOPE)
            return self._modal(subject, self._choose(modals), negated)
        if kind == "state":
            return self._state(subject, is_plain=is_plain)
        if kind == "have":
            return self._having(subject)
        if kind == "know":
            clause = self._knowing(subject)
        elif kind == "need":
            clause = self._needing(subject)
        elif kind == "like" and not isinstance(subject, Gap):
            clause = self._liking(subject)
        elif kind == "be":
            clause = self._being(subject)
        else:
            return self._deed(subject, negated=negated, often=often)
        return replace(clause, negated=False) if is_plain else clause

    def _deed(
        self,
        subject: Phrase,
        tense: str = "",
        *,
        negated: bool | None = None,
        often: bool | None = None,
        times: bool | None = None,
        names: Sequence[str] = (),
    ) -> Clause:
        """What somebody does, did or will do; what is not given is drawn."""
        tense = tense or self._choose(
            ("present", "present", "progressive", "past", "past", "future")
        )
        negated = self._chance(0.2) if negated is None else negated
        verb = self._verb(subject, tense, names)
        if often is None:
            often = tense == "present" and not negated and self._chance(0.3)
        if verb.base == "speak":
            times = False
        action = self._action(subject, verb, tense, negated, times=False if often else times)
        frequency = self._choose(FREQUENCIES) if often else None
        return Clause(subject, action, tense, frequency=frequency, negated=negated)

    def _modal(
        self,
        subject: Phrase,
        modal: Modal,
        negated: bool | None = None,
        names: Sequence[str] = (),
    ) -> Clause:
        if negated is None:
            negated = modal in (WANT, CAN) and self._chance(0.25)
        names = names or {CAN: FAVOURS, HOPE: HOPES, HAVE_TO: TASKS}.get(modal, ())
        verb = self._verb(subject, "infinitive", names)
        action = self._action(subject, verb, "infinitive", negated)
        return Clause(subject, action, modal=modal, negated=negated)

    def _state(self, subject: Phrase, names: Sequence[str] = (), is_plain: bool = False) -> Clause:
        """How somebody is: any way, or, neither negated nor often, one of those named."""
        states: list[Be | Feel] = [
            Be(mood)
            for mood in MOODS.values()
            if subject.gender or not mood.shows_gender
            if not names or mood.english in names
        ]
        states += [Feel(what) for what in HAVING if not names or what.english in names]
        is_plain = is_plain or bool(names)
        often = not is_plain and self._chance(0.15)
        return Clause(
            subject,
            self._choose(states),
            frequency=self._choose(FREQUENCIES) if often else None,
            negated=not is_plain and not often and self._chance(0.15),
        )

    def _knowing(self, subject: Phrase) -> Clause:
        verb = self._new(tuple(STATES.values()))
        negated = verb.base == "know" and self._chance(0.3)
        other = self._other(subject, is_known=verb.base == "know")
        return Clause(subject, Action(verb, other), negated=negated)

    def _being(self, subject: Phrase) -> Clause:
        """To be somewhere, or somebody's sister."""
        is_one = isinstance(subject, Name | NounPhrase) and not subject.plural
        if is_one and not (isinstance(subject, NounPhrase) and "kin" in subject.noun.kinds):
            if self._chance(0.6):
                kin = self._kin(subject.gender)
                return Clause(subject, Be(replace(kin, plural=False)), negated=self._chance(0.15))
        place = self._choose(PLACES[self._choose(("home", "out", "town"))])
        return Clause(subject, Be(place), negated=self._chance(0.15))

    def _having(self, subject: Phrase) -> Clause:
        noun = self._noun("animal", "thing", "carried")
        return Clause(subject, Have(self._noun_phrase(noun, ("a", "a", "number"))))

    def _needing(self, subject: Phrase) -> Clause:
        noun = self._noun("food", "mass", "carried", "thing")
        determiners = ("a", "a", "the", "this", "number")
        if noun.kinds & {"food", "mass"}:
            determiners = ("",) if "mass" in noun.kinds else ("a", "number")
        needed = self._noun_phrase(noun, determiners, has_relative=False)
        return Clause(subject, Need(needed), negated=self._chance(0.1))

    def _liking(self, subject: Phrase) -> Clause:
        negated = self._chance(0.25)
        if self._chance(0.35):
            names = ("dance", "sing", "swim", "read", "play", "work", "eat")
            verb = self._choose([*(VERBS[name] for name in names), *FIXED.values()])
            action = self._action(subject, verb, "infinitive", times=False)
            return Clause(subject, Like(action), negated=negated)
        if self._chance(0.5):
            noun = self._noun("food", "drink", "animal")
            liked = NounPhrase(noun, "all", plural=bool(noun.english[1]))
        else:
            noun = self._noun("thing", "story")
            liked = self._noun_phrase(noun, ("the", "the", "this", "own"), owner=subject)
        return Clause(subject, Like(liked), negated=negated)

    def _about_thing(self) -> Clause:
        noun = self._noun("thing", "story")
        told = self._choose([a for a in ADJECTIVES.values() if a.kinds & noun.kinds])
        thing = self._noun_phrase(noun, ("the", "the", "this", "own"), has_adjective=False)
        return Clause(thing, Be(told), negated=self._chance(0.2))

    def _where_thing(self) -> Clause:
        thing = self._noun_phrase(self._noun("carried"), ("the", "the", "own"))
        return Clause(thing, Be(self._at()), negated=self._chance(0.2))

    def _there(self) -> There:
        is_animal = self._chance(0.5)
        noun = self._noun("animal" if is_animal else "carried")
        what = self._noun_phrase(noun, ("a", "a", "number"))
        return There(what, self._choose(PLACES["home"][1:]) if is_animal else self._at())

    def _at(self) -> At:
        """In, on or under something that can hold or bear what was drawn before."""
        preposition = self._choose(tuple(BEARS))
        noun = self._noun(BEARS[preposition])
        place = self._noun_phrase(noun, ("the", "the", "own"), has_relative=False)
        return At(preposition, replace(place, plural=False))

    # Verbs with what belongs to them

    def _verb(self, subject: Phrase, tense: str, names: Sequence[str] = ()) -> Verb:
        verbs = [VERBS.get(name) or FIXED[name] for name in names]
        verbs = verbs or [*VERBS.values(), *FIXED.values()]
        return self._new(
            [
                verb
                for verb in verbs
                if tense in verb.tenses
                and (tense != "past" or verb.auxiliary == "avere" or subject.gender)
            ]
        )

    def _action(
        self,
        subject: Phrase,
        verb: Verb,
        tense: str,
        negated: bool = False,
        times: bool | None = None,
    ) -> Action:
        receiver = self._other(subject) if verb.base == "give" else None
        is_last = not receiver or isinstance(receiver, Pronoun)
        # "I read" is today or yesterday, so that the time must be said.
        shows_no_tense = tense == "present" and verb.base == verb.past and subject.person != 2
        given = self._object(subject, verb, has_relative=is_last and not shows_no_tense)
        place = companion = None
        if isinstance(given, NounPhrase) and given.relative:
            return Action(verb, given, receiver)
        groups = sorted(verb.places - {"with", "only"})
        if groups and (groups[0] in ("to", "for", "from", "sea") or self._chance(0.35)):
            place = self._new(PLACES[self._choose(groups)])
        if "only" in verb.places or "with" in verb.places and self._chance(0.35):
            companion = self._other(subject, PRONOUNS)
        if times is None:
            # "She eats an apple" wants to know when.
            is_bare = isinstance(given, NounPhrase) and not (place or companion)
            is_bare = tense == "present" and not negated and (is_bare or shows_no_tense)
            times = is_bare or self._chance(0.15 if negated else 0.35)
        at = self._times(tense, negated) if times else ()
        return Action(verb, given, receiver, place, companion, at)

    def _times(self, tense: str, negated: bool) -> tuple[Adverbial, ...]:
        options = TIMES[tense]
        if negated:
            options = [time for time in options if not re.search("ago|days", time.english)]
        time = self._new(options)
        if re.match("on |tomorrow|yesterday$", time.english) and self._chance(0.25):
            return time, self._choose(HOURS)
        return (time,)

    def _object(
        self, subject: Phrase, verb: Verb, has_relative: bool = True
    ) -> Phrase | Adverbial | None:
        if "game" in verb.objects:
            return self._choose(GAMES)
        if "language" in verb.objects:
            return self._choose(LANGUAGES)
        if not verb.objects:
            return None
        if "kin" in verb.objects and self._chance(0.7):
            return self._other(subject)
        noun = self._noun(*sorted(verb.objects - {"kin"}))
        word = noun.english[0]
        determiners = ("the", "the", "a", "a", "this", "own", "own", "number")
        if noun.kinds & {"ride", "instrument", "person"} or word == "kitchen":
            determiners = ("the",)
        elif "mass" in noun.kinds:
            determiners = ("all",) if "heard" in noun.kinds else ("", "", "", "the")
        elif "food" in noun.kinds or verb.base == "write":
            determiners = ("the", "a", "a", "number")
        elif "cleaned" in noun.kinds or word in ("newspaper", "door"):
            determiners = ("the", "the", "this")
        elif verb.base in ("lose", "look"):
            determiners = ("the", "own")
        elif verb.base == "buy":
            determiners = ("the", "a", "a", "this", "number")
        has_relative = has_relative and verb.base not in ("write", "look")
        return self._noun_phrase(noun, determiners, has_relative=has_relative)

    # Phrases

    def _subject(self) -> Phrase:
        return self._choose((ME, *PRONOUNS, US)) if self._chance(0.6) else self._person()

    def _asked(self) -> Phrase:
        """Whom one asks about; mostly who is asked."""
        return self._choose((YOU,) * 5 + (HIM, HER, THEM, US, self._person(), self._person()))

    def _person(self) -> Phrase:
        kind = self._choose(("name",) * 5 + ("kin",) * 3 + ("noun",) * 3 + ("both",))
        if kind == "name":
            return self._name()
        if kind == "kin":
            return self._kin()
        if kind == "both":
            return Both(self._name(), self._name())
        return self._noun_phrase(self._noun("person"), ("the", "the", "the", "this"))

    def _other(
        self,
        subject: Phrase,
        pronouns: Sequence[Pronoun] = PRONOUNS[:-1],  # as an object, "them" shows no gender
        is_known: bool = False,
    ) -> Phrase:
        """Whom somebody sees, gives something to, or does something with."""
        if self._chance(0.5):
            mine = {0, 3} if subject.person in (0, 3) else {subject.person}
            fitting = [p for p in pronouns if p.person not in mine or p.person == 2]
            return self._choose(fitting)
        if self._chance(0.4):
            return self._name()
        if self._chance(0.25):
            return self._noun_phrase(self._noun("person"), ("the",), has_relative=False)
        return self._kin(owner=subject if is_known else None)

    def _name(self) -> Name:
        return Name(self._new(tuple(NAMES)))

    def _kin(self, gender: str = "", owner: Phrase | None = None) -> NounPhrase:
        """A relative; not the owner's own."""
        kin = [noun for noun in NOUNS.values() if "kin" in noun.kinds]
        noun = self._new([noun for noun in kin if gender in ("", noun.gender)])
        plural = bool(noun.english[1]) and self._chance(0.2)
        return NounPhrase(noun, self._owner(owner), plural)

    def _owner(self, without: Phrase | None = None) -> str:
        own = OWN.get(without) if isinstance(without, Pronoun) else None
        return self._choose([word for word in ("my", "my", *POSSESSIVES) if word != own])

    def _noun(self, *kinds: str) -> Noun:
        return self._new([noun for noun in NOUNS.values() if noun.kinds & {*kinds}])

    def _noun_phrase(
        self,
        noun: Noun,
        determiners: Sequence[str],
        has_adjective: bool = True,
        has_relative: bool = True,
        owner: Phrase | None = None,
    ) -> NounPhrase:
        """Draws what belongs to a noun; `"own"` is a possessive, though not the owner's."""
        determiner = self._choose(determiners)
        can_be_many = bool(noun.english[1])
        if determiner == "own":
            determiner = self._owner(owner)
        if determiner == "number":
            determiner = self._choose(tuple(NUMBERS)) if can_be_many else "the"
        plural = determiner in NUMBERS
        if can_be_many and determiner not in ("", "a", "all"):
            plural = plural or self._chance(0.3)
        has_adjective = has_adjective and determiner not in ("", "all")
        phrase = NounPhrase(noun, determiner, plural, self._adjectives(noun, has_adjective))
        if has_relative and determiner == "the" and self._chance(0.25):
            phrase = replace(phrase, relative=self._relative(phrase))
        return phrase

    def _adjectives(self, noun: Noun, may_have: bool) -> tuple[Adjective, ...]:
        fitting = [a for a in ADJECTIVES.values() if a.kinds & noun.kinds]
        if not (may_have and fitting and self._chance(0.3)):
            return ()
        first = self._choose(fitting)
        behind = [adjective for adjective in fitting if not adjective.is_before]
        if first.is_before and behind and self._chance(0.3):
            return first, self._choose(behind)
        return (first,)

    def _relative(self, phrase: NounPhrase) -> Clause | None:
        """A clause that lacks the noun: its subject where it is a person, its object otherwise."""
        gap = Gap(phrase.person, phrase.gender, phrase.plural)
        if "person" in phrase.noun.kinds:
            clause = self._deed(gap, self._choose(("present", "past")), often=False)
            is_nested = getattr(clause.action.object, "relative", None)
            return None if is_nested else clause
        names = ("buy", "find", "lose", "read", "write", "eat")
        verbs = [VERBS[name] for name in names if VERBS[name].objects & phrase.noun.kinds]
        if not verbs:
            return None
        subject = self._choose((ME, YOU, US, self._name(), self._name()))
        return Clause(subject, Action(self._new(verbs), gap), "past")

    # Chance

    def _new(self, options: Sequence):
        """Draws what was not drawn in this sentence, as far as there is any."""
        option = self._choose([o for o in options if o not in self._drawn] or options)
        self._drawn.add(option)
        return option

    def _choose(self, options: Sequence):
        # Only `random()` is promised to give the same numbers in every version of Python.
        return options[int(self._rng.random() * len(options))]

    def _chance(self, probability: float) -> bool:
        return self._rng.random() < probability
