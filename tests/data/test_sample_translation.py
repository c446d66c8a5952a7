import hashlib
import os
import random
import re
import subprocess
import sys
from collections import Counter

import pytest

from rnnapps.data.datasets.sample_translation import grammar
from rnnapps.data.datasets.sample_translation.lexicon import (
    ADJECTIVES,
    CAN,
    FIXED,
    FREQUENCIES,
    GAMES,
    HAVE_TO,
    HAVING,
    HOPE,
    KNOW,
    MOODS,
    NOUNS,
    PLACES,
    SAY,
    STATES,
    TIMES,
    VERBS,
    WANT,
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
    Question,
    Report,
    There,
)

DIGEST_OF_400 = "8560a35b6ffb09a25ceeafae6ca669ef6b2e78d533e604a5d70efeec2274431a"


def the(noun, *adjectives, by="the", plural=False, relative=None):
    adjectives = tuple(ADJECTIVES[adjective] for adjective in adjectives)
    return NounPhrase(NOUNS[noun], by, plural, adjectives, relative)


def do(subject, verb, given=None, to=None, tense="present", modal=None, negated=False, **adverbs):
    verb = VERBS.get(verb) or STATES[verb]
    often = {"frequency": adverbs.pop("often")} if "often" in adverbs else {}
    return Clause(
        subject, Action(verb, given, to, **adverbs), tense, modal, negated=negated, **often
    )


def at(group, english):
    return next(place for place in (PLACES | TIMES)[group] if place.english == english)


ANNA, MARCO, GIULIA, LUCA, ELENA = map(Name, ("Anna", "Marco", "Giulia", "Luca", "Elena"))
SOMEBODY = Gap(2, "m", False)
ALWAYS, OFTEN, NEVER = FREQUENCIES
HUNGRY, THIRSTY, HURRY = map(Feel, HAVING)

EXAMPLES = [
    (
        Question(do(YOU, "dance", modal=WANT, companion=ME)),
        "Do you want to dance with me?",
        "Vuoi ballare con me?",
    ),
    # What the grammar's documentation shows.
    (do(ME, "know", YOU), "I know you.", "Ti conosco."),
    (
        Question(do(HER, "see", the("film"), tense="past")),
        "Did she see the film?",
        "Ha visto il film?",
    ),
    (
        Question(do(MARCO, "see", HER, modal=WANT)),
        "Does Marco want to see her?",
        "Marco vuole vederla?",
    ),
    (
        Clause(the("sister", by="my"), Be(MOODS["tired"])),
        "My sister is tired.",
        "Mia sorella è stanca.",
    ),
    (
        Clause(ANNA, Like(the("hat", "red", plural=True))),
        "Anna likes the red hats.",
        "Ad Anna piacciono i cappelli rossi.",
    ),
    (
        do(US, "wait for", the("train"), tense="progressive"),
        "We are waiting for the train.",
        "Stiamo aspettando il treno.",
    ),
    (
        Clause(HIM, Action(FIXED["play"], GAMES[0]), frequency=NEVER),
        "He never plays football.",
        "Non gioca mai a calcio.",
    ),
    (
        Joined(
            "but",
            do(HIM, "buy", the("watch", by="a"), tense="past"),
            do(HIM, "lose", It("m"), tense="past"),
        ),
        "He bought a watch, but he lost it.",
        "Ha comprato un orologio, ma l'ha perso.",
    ),
    (
        Joined(
            "and",
            do(ME, "find", the("key", plural=True), tense="past"),
            do(ME, "give", It("f", True), HER, tense="past").without_subject(),
        ),
        "I found the keys and gave them to her.",
        "Ho trovato le chiavi e gliele ho date.",
    ),
    (
        Joined("when", do(ME, "call", YOU, tense="future"), do(ME, "arrive", tense="future")),
        "When I arrive, I will call you.",
        "Quando arriverò, ti chiamerò.",
    ),
    # Articles, before and behind prepositions
    (
        Clause(US, Need(the("backpack", "beautiful"))),
        "We need the beautiful backpack.",
        "Abbiamo bisogno del bello zaino.",
    ),
    (
        Clause(the("key", by="her", plural=True), Be(At("in", the("wardrobe")))),
        "Her keys are in the wardrobe.",
        "Le sue chiavi sono nell'armadio.",
    ),
    (
        There(the("watch", by="two", plural=True), At("in", the("backpack", "old", by="their"))),
        "There are two watches in their old backpack.",
        "Ci sono due orologi nel loro vecchio zaino.",
    ),
    (
        Clause(
            the("student", plural=True), Like(the("orange", by="all", plural=True)), negated=True
        ),
        "The students do not like oranges.",
        "Agli studenti non piacciono le arance.",
    ),
    (
        do(the("uncle", by="my"), "buy", the("umbrella", "beautiful", by="a"), tense="past"),
        "My uncle bought a beautiful umbrella.",
        "Mio zio ha comprato un bell'ombrello.",
    ),
    (
        do(
            the("mother", by="their"),
            "see",
            the("photo", "beautiful", by="this", plural=True),
            tense="future",
        ),
        "Their mother will see these beautiful photos.",
        "La loro madre vedrà queste belle foto.",
    ),
    # Auxiliaries and participles
    (
        do(ANNA, "go", tense="past", place=at("to", "to Rome"), times=(at("past", "yesterday"),)),
        "Anna went to Rome yesterday.",
        "Anna è andata a Roma ieri.",
    ),
    (
        do(Both(ANNA, GIULIA), "return", tense="past", place=at("from", "from Italy")),
        "Anna and Giulia returned from Italy.",
        "Anna e Giulia sono tornate dall'Italia.",
    ),
    (
        do(Both(MARCO, ELENA), "leave", tense="past", place=at("for", "for France"), negated=True),
        "Marco and Elena did not leave for France.",
        "Marco ed Elena non sono partiti per la Francia.",
    ),
    (
        do(US, "see", HER, tense="past", times=(at("past", "on Monday"),)),
        "We saw her on Monday.",
        "L'abbiamo vista lunedì.",
    ),
    (do(LUCA, "help", US, tense="past"), "Luca helped us.", "Luca ci ha aiutato."),
    # Clitics
    (
        do(HER, "wait for", HIM, tense="progressive"),
        "She is waiting for him.",
        "Lo sta aspettando.",
    ),
    (
        do(ME, "give", the("book", by="this"), HIM, tense="future"),
        "I will give him this book.",
        "Gli darò questo libro.",
    ),
    (
        Question(do(YOU, "give", the("key", by="your"), ME, modal=CAN)),
        "Can you give me your key?",
        "Puoi darmi la tua chiave?",
    ),
    (
        Joined(
            "but",
            do(YOU, "buy", the("bag", by="a"), tense="past"),
            do(YOU, "give", It("f"), ME, tense="past", negated=True),
        ),
        "You bought a bag, but you did not give it to me.",
        "Hai comprato una borsa, ma non me l'hai data.",
    ),
    (
        Joined(
            "and",
            do(MARCO, "find", the("book", by="a"), tense="past"),
            do(MARCO, "give", It("m"), ANNA, tense="past").without_subject(),
        ),
        "Marco found a book and gave it to Anna.",
        "Marco ha trovato un libro e l'ha dato ad Anna.",
    ),
    # What one likes, is and has
    (
        Clause(THEM, Like(Action(VERBS["swim"], place=at("sea", "in the sea")))),
        "They like to swim in the sea.",
        "A loro piace nuotare nel mare.",
    ),
    (
        Question(Clause(YOU, Like(the("house", by="my")))),
        "Do you like my house?",
        "Ti piace la mia casa?",
    ),
    (Clause(US, HUNGRY, negated=True), "We are not hungry.", "Non abbiamo fame."),
    (Clause(HIM, HURRY, frequency=ALWAYS), "He is always in a hurry.", "Ha sempre fretta."),
    (
        Clause(the("actress", "famous"), Be(the("aunt", by="my"))),
        "The famous actress is my aunt.",
        "L'attrice famosa è mia zia.",
    ),
    # Questions
    (
        Question(Clause(the("bicycle", by="my"), Be(at("home", "at home"))), "why"),
        "Why is my bicycle at home?",
        "Perché la mia bicicletta è a casa?",
    ),
    (
        Question(
            Clause(the("bag", by="your"), Be(GAMES[0]._replace(english="", italian=""))), "where"
        ),
        "Where is your bag?",
        "Dov'è la tua borsa?",
    ),
    (Question(do(ANNA, "work"), "where"), "Where does Anna work?", "Dove lavora Anna?"),
    (
        Question(do(the("girl"), "go", tense="past"), "where"),
        "Where did the girl go?",
        "Dov'è andata la ragazza?",
    ),
    (
        Question(do(YOU, "eat", SOMEBODY, modal=WANT), "what"),
        "What do you want to eat?",
        "Che cosa vuoi mangiare?",
    ),
    (
        Question(do(YOU, "wait for", SOMEBODY, tense="progressive"), "who"),
        "Who are you waiting for?",
        "Chi stai aspettando?",
    ),
    (
        Question(do(SOMEBODY, "open", the("window"), tense="past"), "who"),
        "Who opened the window?",
        "Chi ha aperto la finestra?",
    ),
    (
        Question(Clause(YOU, Like(the("dog", by="all", plural=True)), negated=True), "why"),
        "Why do you not like dogs?",
        "Perché non ti piacciono i cani?",
    ),
    # Clauses in clauses
    (
        do(
            ME,
            "lose",
            the("letter", relative=do(ANNA, "write", Gap(2, "f", False), tense="past")),
            tense="past",
        ),
        "I lost the letter that Anna wrote.",
        "Ho perso la lettera che Anna ha scritto.",
    ),
    (
        Clause(
            the(
                "woman",
                relative=do(Gap(2, "f", False), "work", place=at("town", "in Milan")),
            ),
            Be(MOODS["happy"]),
        ),
        "The woman who works in Milan is happy.",
        "La donna che lavora a Milano è felice.",
    ),
    (
        Clause(ANNA, Report(SAY, do(HER, "clean", the("kitchen"), modal=HAVE_TO))),
        "Anna says that she has to clean the kitchen.",
        "Anna dice che deve pulire la cucina.",
    ),
    (
        Clause(ME, Report(KNOW, Clause(YOU, Have(the("cat", "black", by="a"))))),
        "I know that you have a black cat.",
        "So che hai un gatto nero.",
    ),
    (
        Joined(
            "because",
            do(LUCA, "come", modal=CAN, negated=True, companion=US),
            Clause(the("son", by="his"), Be(MOODS["ill"])),
        ),
        "Luca cannot come with us because his son is ill.",
        "Luca non può venire con noi perché suo figlio è malato.",
    ),
    (
        Joined(
            "while",
            do(ELENA, "sleep", tense="progressive"),
            do(the("man", plural=True), "play", the("guitar"), tense="progressive"),
        ),
        "Elena is sleeping while the men are playing the guitar.",
        "Elena sta dormendo mentre gli uomini stanno suonando la chitarra.",
    ),
    (
        do(THEM, "find", the("book", "good", "new", by="a"), modal=HOPE),
        "They hope to find a good new book.",
        "Sperano di trovare un buon libro nuovo.",
    ),
    (
        Joined("when", do(US, "drink", the("water", by="")), Clause(US, THIRSTY)),
        "When we are thirsty, we drink water.",
        "Quando abbiamo sete, beviamo acqua.",
    ),
    (
        do(YOU, "work", often=OFTEN, place=at("home", "in the garden"), companion=the("boy")),
        "You often work in the garden with the boy.",
        "Lavori spesso in giardino con il ragazzo.",
    ),
]


@pytest.fixture(scope="module")
def splits():
    return grammar.splits()


@pytest.mark.parametrize(
    ("meaning", "english", "italian"), EXAMPLES, ids=lambda value: str(value)[:40]
)
def test_pairs_that_a_speaker_of_both_confirms(meaning, english, italian):
    assert grammar.pair(meaning) == (english, italian)


def test_documented_pairs_are_of_the_grammar():
    known = {(english, italian) for _, english, italian in EXAMPLES}
    assert grammar.HELD_OUT in known
    table = re.split("=+ =+\n", grammar.__doc__)[2]
    rows = [tuple(re.split("(?<=[.?]) +", line)) for line in table.splitlines()]
    assert len(rows) == 10 and known.issuperset(rows)


def test_pairs_are_the_same_whatever_the_hash_seed(splits):
    assert _digest(splits["train"][:400]) == DIGEST_OF_400

    script = (
        "import hashlib\n"
        "from rnnapps.data.datasets.sample_translation import grammar\n"
        "grammar.SPLIT_SIZES = {'train': 400}\n"
        "lines = ['\\t'.join(pair) for pair in grammar.splits()['train']]\n"
        "print(hashlib.sha256('\\n'.join(lines).encode()).hexdigest())"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed.strip() == DIGEST_OF_400


def test_no_source_comes_twice(splits):
    assert {split: len(pairs) for split, pairs in splits.items()} == grammar.SPLIT_SIZES
    keys = [_words(pair.source) for pairs in splits.values() for pair in pairs]
    assert len(set(keys)) == len(keys)
    assert _words(grammar.HELD_OUT[0]) not in keys


def test_a_source_has_one_translation():
    writer = grammar.Writer(random.Random(0))
    known, num_again = {}, 0
    for _ in range(6_000):
        drawn = writer.pair((2, 5))
        num_again += drawn.source in known
        assert known.setdefault(drawn.source, drawn.target) == drawn.target
    assert num_again > 1_000


def test_lengths_are_as_documented_and_as_frequent(splits):
    for pairs in splits.values():
        lengths = Counter(len(pair.source.split()) for pair in pairs)
        assert min(lengths) in (2, 3) and max(lengths) == 25
        for first, last in grammar.BANDS:
            assert sum(lengths[n] for n in range(first, last + 1)) == len(pairs) / 5


def test_words_of_dev_and_test_are_frequent_in_train(splits):
    counts = Counter(word for pair in splits["train"] for word in grammar.words(pair))
    for split in ("dev", "test"):
        used = {word for pair in splits[split] for word in grammar.words(pair)}
        assert min(counts[word] for word in used) >= grammar.KNOWN_FROM
    sizes = Counter(word.partition(":")[0] for word in counts)
    assert 250 < sizes["en"] < 330 and 450 < sizes["it"] < 600


def test_what_is_held_out_is_known_in_its_parts(splits):
    sources = [pair.source for pair in splits["train"]]
    assert sum(source.startswith("Do you want to dance with ") for source in sources) >= 10
    assert sum(bool(re.match("Do you want to .* with me", source)) for source in sources) >= 20
    assert {"him", "her", "us", "them"} <= {
        match[1]
        for source in sources
        if (match := re.match(r"Do you want to .*with (\w+)", source))
    }


# What a noun is, typed in here apart from the lexicon: masculine or feminine, singular or plural.
NUMBER_AND_GENDER = {
    "ms": "ragazzo uomo studente medico attore padre fratello figlio zio cane gatto gelato pane "
    "formaggio vino caffè libro giornale orologio ombrello zaino cappello tavolo letto armadio "
    "treno",
    "mp": "ragazzi uomini studenti medici attori fratelli cani gatti libri orologi ombrelli zaini "
    "cappelli",
    "fs": "ragazza donna attrice madre sorella figlia zia mela arancia torta acqua lettera chiave "
    "borsa macchina bicicletta casa cucina finestra porta musica chitarra",
    "fp": "ragazze donne attrici sorelle mele arance torte lettere chiavi borse macchine "
    "biciclette finestre porte",
}
KIND_OF = {noun: kind for kind, nouns in NUMBER_AND_GENDER.items() for noun in nouns.split()}
DETERMINERS = {
    "ms": "il lo un uno del dello al allo dal nel nello sul sullo questo mio tuo suo nostro",
    "mp": "i gli dei degli ai agli dai questi miei tuoi suoi nostri due tre cinque",
    "fs": "la una della alla dalla nella sulla questa mia tua sua nostra",
    "fp": "le delle alle dalle queste mie tue sue nostre due tre cinque",
}
ENDINGS = {"ms": "o", "mp": "i", "fs": "a", "fp": "e"}
STEMS = r"(?:ross|ner|bianch?|nuov|famos|piccol|vecchi?|buon|bell)"


def test_italian_agrees(splits):
    """Articles, possessives and adjectives have the gender and number of their noun."""
    checked = Counter()
    for _, target in splits["train"] + splits["test"]:
        tokens = re.findall(r"\w+'?|[,.?]", target.lower())
        for before, noun, after in zip(["", *tokens], tokens, [*tokens[1:], ""], strict=False):
            kind = KIND_OF.get(noun)
            if kind is None:
                continue
            if before in " ".join(DETERMINERS.values()).split():
                assert before in DETERMINERS[kind].split(), target
                checked["determiner"] += 1
            for other in (before, after):
                if re.fullmatch(f"{STEMS}[oaie]", other):
                    assert other.endswith(ENDINGS[kind]), target
                    checked["adjective"] += 1
    assert min(checked.values()) > 1_000


SHAPES = (
    (r"il|i|un|del|dei|al|ai|dal|dai|nel|sul|bel|bei", r"(?!s[^aeiou]|z|[aeiou])|(?<=un )[aeiou]"),
    (r"lo|uno|dello|allo|dallo|nello|sullo|bello", r"s[^aeiou]|z"),
    (r"gli|degli|agli|begli", r"s[^aeiou]|z|[aeiou]"),
    (r"la|una|della|alla|dalla|nella|sulla", r"[^aeiou]"),
)


def test_articles_fit_the_sound_that_follows(splits):
    adjectives = {form for adjective in ADJECTIVES.values() for form in adjective.italian}
    words = set(KIND_OF) | adjectives | set("mio mia miei mie bel bell bei begli buon".split())
    checked = Counter()
    for _, target in splits["train"] + splits["test"]:
        for article, blank, word in re.findall(r"(?=\b(\w+)('| )(\w+))", target.lower()):
            if word not in words:
                continue
            if blank == "'":
                assert re.match("[aeiou]", word), target
                checked["elided"] += 1
            for articles, sounds in SHAPES:
                if re.fullmatch(articles, article):
                    assert re.search(rf"^{article} (?:{sounds})", f"{article} {word}"), target
                    checked[articles] += 1
    assert len(checked) == 1 + len(SHAPES) and min(checked.values()) > 200


OF_NAMES = (
    r"(?<!e )\b(Anna|Elena|Giulia|Marco|Luca|Paolo)(?: non)? è (?:mai |sempre |spesso )?"
    r"(?:\w+[aiu]t|stanc)([oa])\b"
)


def test_participles_and_predicates_agree_with_the_subject(splits):
    checked = Counter()
    for source, target in splits["train"]:
        for name, ending in re.findall(OF_NAMES, target):
            assert ending == ("a" if name in ("Anna", "Elena", "Giulia") else "o"), target
            checked[ending] += 1
        if source.startswith(("He ", "She ")) and (match := re.match(r"È \w+t([oa])\b", target)):
            assert match[1] == ("a" if source.startswith("She") else "o"), target
            checked[match[1]] += 1
    assert min(checked.values()) > 50


def test_builder_offers_the_same_pairs(tmp_path, monkeypatch):
    from rnnapps.data.datasets.sample_translation import sample_translation_dataset_builder

    monkeypatch.setattr(grammar, "SPLIT_SIZES", {"train": 40, "dev": 6, "test": 10})
    monkeypatch.setattr(grammar, "KNOWN_FROM", 0)
    builder = sample_translation_dataset_builder.Builder(data_dir=tmp_path)
    builder.download_and_prepare()
    assert builder.name == "sample_translation"
    assert str(builder.version) in builder.RELEASE_NOTES
    for split, pairs in grammar.splits().items():
        read = {
            (example["source"].decode(), example["target"].decode())
            for example in builder.as_dataset(split=split).as_numpy_iterator()
        }
        assert read == set(pairs)


def _digest(pairs):
    return hashlib.sha256("\n".join(map("\t".join, pairs)).encode()).hexdigest()


def _words(text):
    return " ".join(re.findall(r"\w+", text.casefold()))
