"""Puts a meaning into English words."""

from rnnapps.data.datasets.sample_translation.lexicon import CAN, Adjective, Adverbial
from rnnapps.data.datasets.sample_translation.meaning import (
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

BE = ("am", "are", "is", "are", "are")


def text(sentence: Sentence) -> str:
    """Writes a sentence.

    Args:
        sentence: What it says.

    Returns:
        The sentence, with a capital and a full stop or question mark.
    """
    words = _question(sentence) if isinstance(sentence, Question) else _statement(sentence)
    written = " ".join(word for word in words if word)
    return f"{written[0].upper()}{written[1:]}{'?' if isinstance(sentence, Question) else '.'}"


def _statement(sentence, is_condition: bool = False) -> list[str]:
    if isinstance(sentence, Joined):
        if sentence.word in ("when", "if"):
            condition = [sentence.word, *_statement(sentence.second, is_condition=True)]
            condition[-1] += ","
            return [*condition, *_statement(sentence.first)]
        first = _statement(sentence.first)
        first[-1] += "," * sentence.has_comma
        return [*first, sentence.word, *_statement(sentence.second)]
    if isinstance(sentence, There):
        return ["there", BE[sentence.what.person], *_there(sentence)]
    auxiliary, bare, alone, rest = _verb(sentence, is_condition)
    often = sentence.frequency.english if sentence.frequency else ""
    subject = _phrase(sentence.subject)
    if sentence.negated:
        denied = "cannot" if auxiliary == "can" else f"{auxiliary} not"
        words = [subject, denied, bare, rest]
    elif alone:
        words = [subject, often, alone, rest]
    else:
        words = [subject, auxiliary, often, bare, rest]
    return [word for word in words if word]


def _question(question: Question) -> list[str]:
    clause = question.clause
    if isinstance(clause, There):
        return [BE[clause.what.person], "there", *_there(clause)]
    if question.word == "who" and isinstance(clause.subject, Gap):
        return ["who", *_statement(clause)]
    auxiliary, bare, _, rest = _verb(clause)
    often = clause.frequency.english if clause.frequency else ""
    denied = "not" if clause.negated else ""
    return [question.word, auxiliary, _phrase(clause.subject), denied, often, bare, rest]


def _there(there: There) -> list[str]:
    return [_phrase(there.what), _place(there.place)]


def _verb(clause: Clause, is_condition: bool = False) -> tuple[str, str, str, str]:
    """The auxiliary of questions and denials, the verb behind it, the verb alone, and the rest."""
    action, person = clause.action, clause.subject.person
    third = person == 2
    do = "does" if third else "do"
    match action:
        case Be(NounPhrase() as what):
            return BE[person], "", "", _phrase(what)
        case Be(Adjective(english=what)) | Feel(Adverbial(english=what)):
            return BE[person], "", "", what
        case Be(place):
            return BE[person], "", "", _place(place)
        case Have(what):
            return do, "have", "has" if third else "have", _phrase(what)
        case Need(what):
            return do, "need", "needs" if third else "need", _phrase(what)
        case Like(Action() as what):
            return (
                do,
                "like",
                "likes" if third else "like",
                f"to {what.verb.base} {_rest(what)}".strip(),
            )
        case Like(what):
            return do, "like", "likes" if third else "like", _phrase(what)
        case Report(verb, said):
            that = ["that", *_statement(said)]
            return do, verb.english, verb.third if third else verb.english, " ".join(that)
    verb, rest = action.verb, _rest(action)
    if clause.modal == CAN:
        return "can", verb.base, "", rest
    if clause.modal:
        modal = clause.modal
        first = modal.third if third else modal.english
        return do, f"{modal.english} {verb.base}", f"{first} {verb.base}", rest
    if clause.tense == "progressive":
        return BE[person], verb.ing, "", rest
    if clause.tense == "future" and not is_condition:
        return "will", verb.base, "", rest
    if clause.tense == "past":
        return "did", verb.base, verb.past, rest
    return do, verb.base, verb.third if third else verb.base, rest


def _rest(action: Action) -> str:
    """What comes behind a verb."""
    given, receiver = _phrase(action.object, is_object=True), ""
    if action.recipient:
        receiver = _phrase(action.recipient, is_object=True)
        if isinstance(action.recipient, Pronoun) and not isinstance(action.object, It | Gap):
            given, receiver = receiver, given
        else:
            receiver = f"to {receiver}"
    companion = f"with {_phrase(action.companion, is_object=True)}" if action.companion else ""
    place = action.place.english if action.place else ""
    times = [time.english for time in action.times]
    words = [action.verb.particle, given, receiver, place, companion, *times]
    return " ".join(word for word in words if word)


def _place(place: Adverbial | At) -> str:
    if isinstance(place, At):
        return f"{place.preposition} {_phrase(place.place)}"
    return place.english


def _phrase(phrase: Phrase | Adverbial | None, is_object: bool = False) -> str:
    match phrase:
        case Pronoun():
            return phrase.object if is_object else phrase.subject
        case It():
            return "them" if phrase.plural else "it"
        case Name(text):
            return text
        case Both(first, second):
            return f"{_phrase(first)} and {_phrase(second)}"
        case Adverbial(english=text):
            return text
        case NounPhrase():
            return " ".join(_noun_phrase(phrase))
    return ""


def _noun_phrase(phrase: NounPhrase) -> list[str]:
    words = [adjective.english for adjective in phrase.adjectives]
    words.append(phrase.noun.english[phrase.plural])
    determiner = phrase.determiner
    if determiner == "a" and words[0][0] in "aeiou":
        determiner = "an"
    elif determiner == "this" and phrase.plural:
        determiner = "these"
    if determiner not in ("", "all"):
        words.insert(0, determiner)
    if phrase.relative:
        is_subject = isinstance(phrase.relative.subject, Gap)
        is_person = "person" in phrase.noun.kinds
        words.append("who" if is_subject and is_person else "that")
        words += _statement(phrase.relative)
    return words
