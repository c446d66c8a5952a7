"""Puts a meaning into Italian words: agreement, articles, clitics, and subjects left out."""

from collections.abc import Sequence

from rnnapps.data.datasets.sample_translation.lexicon import (
    AVERE,
    ESSERE,
    NUMBERS,
    POSSESSIVES,
    STARE,
    Adjective,
    Adverbial,
    Verb,
)
from rnnapps.data.datasets.sample_translation.meaning import (
    THEM,
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

JOINTS = {
    "because": "perché",
    "and": "e",
    "but": "ma",
    "while": "mentre",
    "when": "quando",
    "if": "se",
}
QUESTIONS = {
    "where": "dove",
    "when": "quando",
    "why": "perché",
    "what": "che cosa",
    "who": "chi",
    "": "",
}
PREPOSITIONS = {"in": "in", "on": "su", "under": "sotto"}

# Of each pronoun by person: behind a preposition, as a direct object, as an indirect one, and so
# before lo, la, li, le.
STRESSED = ("me", "te", {"m": "lui", "f": "lei"}, "noi", "loro")
INDIRECT = ("mi", "ti", {"m": "gli", "f": "le"}, "ci")
BEFORE_DIRECT = ("me", "te", {"m": "glie", "f": "glie"}, "ce")
DIRECT = {("m", False): "lo", ("f", False): "la", ("m", True): "li", ("f", True): "le"}

# Before a consonant, before s and a consonant, z and the like, before a vowel; then the plurals.
ARTICLES = {"m": ("il", "lo", "l'", "i", "gli", "gli"), "f": ("la", "la", "l'", "le", "le", "le")}
INDEFINITE = {"m": ("un", "uno", "un"), "f": ("una", "una", "un'")}
BEAUTIFUL = {
    "m": ("bel", "bello", "bell'", "bei", "begli", "begli"),
    "f": ("bella",) * 3 + ("belle",) * 3,
}
GOOD = {
    "m": ("buon", "buono", "buon", "buoni", "buoni", "buoni"),
    "f": ("buona",) * 3 + ("buone",) * 3,
}
# Prepositions that merge with an article: what is before its l.
MERGED = {"di": "de", "a": "a", "da": "da", "in": "ne", "su": "su"}
VOWELS = "aeiouàèéìòù"


def text(sentence: Sentence) -> str:
    """Writes a sentence.

    Args:
        sentence: What it says.

    Returns:
        The sentence, with a capital and a full stop or question mark.
    """
    words = _question(sentence) if isinstance(sentence, Question) else _statement(sentence)
    written = _spelt(words)
    return f"{written[0].upper()}{written[1:]}{'?' if isinstance(sentence, Question) else '.'}"


def merged(preposition: str, article: str) -> str:
    """Puts a preposition before a definite article.

    Args:
        preposition: `"di"`, `"a"`, `"da"`, `"in"` or `"su"`.
        article: The article.

    Returns:
        One word.

    Example:
    >>> merged("di", "lo"), merged("in", "l'"), merged("a", "i")
    ('dello', "nell'", 'ai')
    """
    stem = MERGED[preposition]
    if article == "il":
        return f"{stem}l"
    return f"{stem}l{article}" if article.startswith("l") else f"{stem}{article}"


def _spelt(words: Sequence[str]) -> str:
    """Joins words; before the same vowel, a and e become ad and ed."""
    spelt = ""
    words = " ".join(word for word in words if word).split()
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word in ("a", "e") and after[:1].lower().replace("è", "e") == word:
            word += "d"
        spelt += word if word.endswith("'") else f"{word} "
    return spelt.rstrip()


def _statement(sentence) -> list[str]:
    if isinstance(sentence, Joined):
        joint = JOINTS[sentence.word]
        if sentence.word in ("when", "if"):
            return [
                f"{_spelt([joint, *_statement(sentence.second)])},",
                *_statement(sentence.first),
            ]
        first = _spelt(_statement(sentence.first)) + "," * sentence.has_comma
        return [first, joint, *_statement(sentence.second)]
    if isinstance(sentence, There):
        return ["ci sono" if sentence.what.plural else "c'è", *_there(sentence)]
    before, verb, rest = _predicate(sentence)
    return [*_subject(sentence), *before, *verb, *rest]


def _question(question: Question) -> list[str]:
    clause = question.clause
    if isinstance(clause, There):
        return _statement(clause)
    before, verb, rest = _predicate(clause)
    word, subject = QUESTIONS[question.word], _subject(clause)
    if question.word in ("", "why") or isinstance(clause.action, Like):
        return [word, *subject, *before, *verb, *rest]
    if isinstance(clause.action, Be):
        return ["dov'è" if verb == ["è"] else f"{word} {' '.join(verb)}", *subject, *rest]
    if word == "dove" and not before and verb[0] == "è":
        return ["dov'è", *verb[1:], *subject, *rest]
    return [word, *before, *verb, *subject, *rest]


def _there(there: There) -> list[str]:
    return [*_phrase(there.what), *_place(there.place)]


def _subject(clause: Clause) -> list[str]:
    """Nothing for a pronoun, which the verb shows; an indirect object of what pleases."""
    subject = clause.subject
    if isinstance(clause.action, Like):
        if subject == THEM or not isinstance(subject, Pronoun | Gap):
            return _phrase(subject, "a")
        return []
    return [] if isinstance(subject, Pronoun) else _phrase(subject)


def _predicate(clause: Clause) -> tuple[list[str], list[str], list[str]]:
    """What stands before the verb, the verb in all its parts, and what is behind it."""
    action, subject, person = clause.action, clause.subject, clause.subject.person
    before = ["non"] if clause.negated else []
    often = []
    if clause.frequency:
        often = [clause.frequency.italian]
        before += ["non"] * (often == ["mai"])
    match action:
        case Be(NounPhrase() as what):
            return before, [ESSERE[person], *often], _phrase(what)
        case Be(Adjective() as what):
            return before, [ESSERE[person], *often], [_agreeing(what.italian, subject)]
        case Be(place):
            return before, [ESSERE[person], *often], _place(place)
        case Feel(what):
            return before, [AVERE[person], *often], [what.italian]
        case Have(what):
            return before, [AVERE[person], *often], _phrase(what)
        case Need(what):
            return before, [AVERE[person], *often, "bisogno"], _phrase(what, "di")
        case Like(what):
            if not _subject(clause):
                before.append(_indirect(subject, INDIRECT))
            if isinstance(what, Action):
                return before, ["piace", *often, *_infinitive(what)], _objects(what)
            return before, ["piacciono" if what.plural else "piace", *often], _phrase(what)
        case Report(verb, said):
            return before, [verb.italian[person]], ["che", *_statement(said)]
    if clause.modal:
        modal = clause.modal.italian[person]
        return before, [modal, *often, *_infinitive(action)], _objects(action)
    clitics, rest = _clitics(action), _objects(action)
    verb: Verb = action.verb
    if clause.tense == "progressive":
        return before + clitics, [STARE[person], *often, verb.gerund], rest
    if clause.tense == "future":
        return before + clitics, [verb.future[person], *often], rest
    if clause.tense == "present":
        return before + clitics, [verb.present[person], *often], rest
    if verb.auxiliary == "essere":
        participle = _agreeing(_endings(verb.participle), subject)
        return before + clitics, [ESSERE[person], *often, participle], rest
    participle = verb.participle
    if clitics and clitics[-1].endswith(tuple(DIRECT.values())) and _is_direct(action.object):
        participle = _agreeing(_endings(participle), action.object)
        if not action.object.plural:
            # lo ho, la hai: the one elision that is always made
            clitics = [clitics[-1][:-1] + "'"] if len(clitics) == 1 else [clitics[0], "l'"]
    return before + clitics, [AVERE[person], *often, participle], rest


def _is_direct(given: Phrase | Adverbial | None) -> bool:
    """Whether it is a pronoun of the third person, with which a participle agrees."""
    return (
        isinstance(given, It)
        or given is not None
        and given
        in (
            Pronoun("he", "him", 2, "m"),
            Pronoun("she", "her", 2, "f"),
        )
    )


def _clitics(action: Action) -> list[str]:
    """The pronouns that lean on the verb: indirect before direct, `["me", "lo"]`, `["glielo"]`."""
    given, receiver = action.object, action.recipient
    direct = ""
    if isinstance(given, It) or isinstance(given, Pronoun) and given.person == 2:
        direct = DIRECT[given.gender, given.plural]
    elif isinstance(given, Pronoun):
        direct = INDIRECT[given.person]
    if not isinstance(receiver, Pronoun):
        return [direct] if direct else []
    if not direct:
        return [_indirect(receiver, INDIRECT)]
    indirect = _indirect(receiver, BEFORE_DIRECT)
    return [indirect + direct] if indirect == "glie" else [indirect, direct]


def _infinitive(action: Action) -> list[str]:
    """The infinitive, with what leans on it behind: `["vederlo"]`."""
    infinitive, clitics = action.verb.infinitive, "".join(_clitics(action))
    return [infinitive.removesuffix("e") + clitics if clitics else infinitive]


def _objects(action: Action) -> list[str]:
    """What is not said before the verb."""
    words = []
    if action.object and not isinstance(action.object, Pronoun | It):
        words += _phrase(action.object)
    if action.recipient and not isinstance(action.recipient, Pronoun):
        words += _phrase(action.recipient, "a")
    if action.place:
        words += _place(action.place)
    if action.companion:
        words += _phrase(action.companion, "con")
    return words + [time.italian for time in action.times]


def _place(place: Adverbial | At) -> list[str]:
    if isinstance(place, At):
        return _phrase(place.place, PREPOSITIONS[place.preposition])
    return [place.italian]


def _indirect(phrase: Phrase, forms: Sequence) -> str:
    form = forms[phrase.person]
    return form[phrase.gender] if isinstance(form, dict) else form


def _endings(participle: str) -> tuple[str, str, str, str]:
    stem = participle[:-1]
    return f"{stem}o", f"{stem}a", f"{stem}i", f"{stem}e"


def _agreeing(forms: tuple[str, str, str, str], phrase: Phrase) -> str:
    """The form for a phrase's gender and number; the masculine where it tells no gender."""
    return forms[2 * phrase.plural + (phrase.gender == "f")]


def _phrase(phrase: Phrase | Adverbial, preposition: str = "") -> list[str]:
    match phrase:
        case Pronoun():
            return [preposition, _indirect(phrase, STRESSED)]
        case Name(text):
            return [preposition, text]
        case Both(first, second):
            return [*_phrase(first, preposition), "e", *_phrase(second, preposition)]
        case Adverbial():
            return [phrase.italian]
        case NounPhrase():
            return _noun_phrase(phrase, preposition)
    return []


def _noun_phrase(phrase: NounPhrase, preposition: str) -> list[str]:
    noun, plural = phrase.noun.italian[phrase.plural], phrase.plural
    before, after = [], []
    for adjective in phrase.adjectives:
        form = _agreeing(adjective.italian, phrase)
        if adjective.is_before:
            shortened = {"bello": BEAUTIFUL, "buono": GOOD}.get(adjective.italian[0])
            before.append(shortened[phrase.gender][_sound(noun, plural)] if shortened else form)
        else:
            after.append(form)
    words = [*before, noun, *after]
    determiner, article = phrase.determiner, ""
    if determiner in POSSESSIVES:
        words.insert(0, _agreeing(POSSESSIVES[determiner], phrase))
    elif determiner in NUMBERS:
        words.insert(0, NUMBERS[determiner])
    elif determiner == "this":
        this = ("questo", "questa", "questi", "queste")
        is_cut = not plural and _sound(words[0], plural) == 2
        words.insert(0, "quest'" if is_cut else _agreeing(this, phrase))
    elif determiner == "a":
        words.insert(0, INDEFINITE[phrase.gender][_sound(words[0], plural)])
    if _takes_article(phrase):
        article = ARTICLES[phrase.gender][_sound(words[0], plural)]
    if article and preposition in MERGED:
        words.insert(0, merged(preposition, article))
    else:
        words = [preposition, article, *words]
    return words + (["che", *_statement(phrase.relative)] if phrase.relative else [])


def _takes_article(phrase: NounPhrase) -> bool:
    """Definite ones do, also with a possessive, but not "mio padre"; "il loro padre" does."""
    if phrase.determiner in POSSESSIVES:
        is_family = "kin" in phrase.noun.kinds and not phrase.plural
        return not is_family or phrase.determiner == "their"
    return phrase.determiner in ("the", "all")


def _sound(word: str, plural: bool) -> int:
    """The column of `ARTICLES`: what the word behind an article begins with."""
    if word[0] in VOWELS:
        kind = 2
    else:
        is_impure = word[0] == "s" and word[1] not in VOWELS
        kind = int(is_impure or word[0] == "z" or word.startswith(("gn", "ps")))
    return kind + 3 * plural
