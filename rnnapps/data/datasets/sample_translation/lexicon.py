"""The words of the sample: what each is in English and in Italian, and what it goes with.

Every noun, adjective and verb is of kinds, so that only apples and the like are eaten. Persons are
numbered 0 to 4: I, you, he or she, we, they; "you" is always one friend.
"""

from typing import NamedTuple


class Noun(NamedTuple):
    """A noun; one without plural is used in the singular only."""

    english: tuple[str, str]
    italian: tuple[str, str]
    gender: str
    kinds: frozenset[str]


class Adjective(NamedTuple):
    """An adjective: masculine and feminine singular, masculine and feminine plural."""

    english: str
    italian: tuple[str, str, str, str]
    is_before: bool
    kinds: frozenset[str]

    @property
    def shows_gender(self) -> bool:
        """Whether whoever uses it tells if it is said of a man or a woman."""
        return self.italian[0] != self.italian[1]


class Verb(NamedTuple):
    """A verb with its forms; `particle` is the English preposition before an object."""

    base: str
    third: str
    past: str
    ing: str
    particle: str
    infinitive: str
    present: tuple[str, ...]
    future: tuple[str, ...]
    gerund: str
    participle: str
    auxiliary: str
    tenses: frozenset[str]
    objects: frozenset[str]
    places: frozenset[str]


class Adverbial(NamedTuple):
    """A phrase that is translated as a whole."""

    english: str
    italian: str


def _forms(text: str) -> tuple[str, str]:
    forms = text.replace("_", " ").split("/")
    return forms[0], forms[-1] if len(forms) > 1 else ""


def _nouns(text: str) -> dict[str, Noun]:
    nouns = {}
    for line in text.strip().splitlines():
        english, italian, gender, *kinds = line.split()
        noun = Noun(_forms(english), _forms(italian), gender, frozenset(kinds))
        nouns[noun.english[0]] = noun
    return nouns


# English and Italian, singular and plural; gender; kinds. What is of the kinds thing, fair, adult,
# fame, large, animal, food, drink, story or tale may have the adjectives of that kind; the others
# are what verbs have as objects, and what holds things (in it) or bears them (on it).
NOUNS = _nouns("""
boy/boys ragazzo/ragazzi m person
girl/girls ragazza/ragazze f person fair
man/men uomo/uomini m person
woman/women donna/donne f person adult fair
student/students studente/studenti m person adult
doctor/doctors medico/medici m person adult fame
actor/actors attore/attori m person adult fame
actress/actresses attrice/attrici f person adult fair fame
mother madre f kin
father padre m kin
brother/brothers fratello/fratelli m kin
sister/sisters sorella/sorelle f kin
son figlio m kin
daughter figlia f kin
uncle zio m kin
aunt zia f kin
dog/dogs cane/cani m animal large
cat/cats gatto/gatti m animal
apple/apples mela/mele f food
orange/oranges arancia/arance f food
cake/cakes torta/torte f food
ice_cream gelato m food
bread pane m food mass
cheese formaggio m food mass
water acqua f drink mass
wine vino m drink mass
coffee caffè m drink mass
book/books libro/libri m thing carried read written story tale
letter/letters lettera/lettere f carried read written story opened
newspaper giornale m read
film/films film/film m seen story tale
key/keys chiave/chiavi f carried
watch/watches orologio/orologi m thing carried
umbrella/umbrellas ombrello/ombrelli m thing carried
backpack/backpacks zaino/zaini m thing carried holds
bag/bags borsa/borse f thing carried holds
hat/hats cappello/cappelli m thing carried
photo/photos foto/foto f seen
table/tables tavolo/tavoli m thing large bears
bed/beds letto/letti m large bears
wardrobe armadio m holds
car/cars macchina/macchine f thing large cleaned
bicycle/bicycles bicicletta/biciclette f thing
house casa f thing large cleaned
kitchen cucina f cleaned
window/windows finestra/finestre f opened cleaned
door/doors porta/porte f opened
train treno m ride
bus autobus m ride
music musica f heard mass
guitar chitarra f instrument
""")


def _adjectives(text: str) -> dict[str, Adjective]:
    adjectives = {}
    for line in text.strip().splitlines():
        english, italian, place, *kinds = line.split()
        forms = italian.split("/")
        forms = (forms[0], forms[0], forms[1], forms[1]) if len(forms) == 2 else tuple(forms)
        adjectives[english] = Adjective(english, forms, place == "before", frozenset(kinds))
    return adjectives


# Those that stand before the noun in Italian stand before the others in English too.
ADJECTIVES = _adjectives("""
beautiful bello/bella/belli/belle before thing fair animal
good buono/buona/buoni/buone before food drink tale
big grande/grandi before large
small piccolo/piccola/piccoli/piccole before thing animal
old vecchio/vecchia/vecchi/vecchie before thing
young giovane/giovani before adult
new nuovo/nuova/nuovi/nuove after thing
red rosso/rossa/rossi/rosse after thing
black nero/nera/neri/nere after thing animal
white bianco/bianca/bianchi/bianche after thing animal
interesting interessante/interessanti after story
famous famoso/famosa/famosi/famose after fame
""")

# What is said of persons, as a predicate only.
MOODS = _adjectives("""
tired stanco/stanca/stanchi/stanche after
ill malato/malata/malati/malate after
happy felice/felici after
sad triste/tristi after
""")

_PRESENT_ENDINGS = {"a": "o i a iamo ano", "e": "o i e iamo ono", "i": "o i e iamo ono"}
_FUTURE_ENDINGS = ("ò", "ai", "à", "emo", "anno")

# Present forms that no rule gives.
_PRESENT = {
    "essere": "sono sei è siamo sono",
    "avere": "ho hai ha abbiamo hanno",
    "andare": "vado vai va andiamo vanno",
    "venire": "vengo vieni viene veniamo vengono",
    "dare": "do dai dà diamo danno",
    "dire": "dico dici dice diciamo dicono",
    "bere": "bevo bevi beve beviamo bevono",
    "pulire": "pulisco pulisci pulisce puliamo puliscono",
}
_FUTURE_STEM = {"andare": "andr", "venire": "verr", "dare": "dar", "vedere": "vedr"}


def present(infinitive: str) -> tuple[str, ...]:
    """The present of a verb, in five persons."""
    if infinitive in _PRESENT:
        return tuple(_PRESENT[infinitive].split())
    stem, vowel = infinitive[:-3], infinitive[-3]
    forms = []
    for ending in _PRESENT_ENDINGS[vowel].split():
        is_soft = vowel == "a" and ending[0] == "i"
        if is_soft and stem[-1] in "cg":
            forms.append(f"{stem}h{ending}")  # cerchi
        else:
            forms.append((stem.removesuffix("i") if is_soft else stem) + ending)  # mangi
    return tuple(forms)


def future(infinitive: str) -> tuple[str, ...]:
    """The future of a verb, in five persons."""
    stem = infinitive[:-3]
    if stem.endswith(("c", "g")):
        stem += "h"  # cercherò
    elif stem.endswith(("ci", "gi")):
        stem = stem[:-1]  # mangerò
    vowel = "i" if infinitive.endswith("ire") else "e"
    stem = _FUTURE_STEM.get(infinitive, f"{stem}{vowel}r")
    return tuple(stem + ending for ending in _FUTURE_ENDINGS)


# What is done as a habit, is done now, was done, will be done, and what one may want to do.
_TENSES = {"P": "present", "N": "progressive", "W": "past", "F": "future", "I": "infinitive"}


def _verbs(text: str) -> dict[str, Verb]:
    """Lines of: English forms, Italian ones, tenses, what is its object, where it is done.

    Among the places are also "with", for what may be done with others, and "only" for what must.
    """
    verbs = {}
    for line in text.strip().splitlines():
        english, italian, tenses, objects, places = (part.split() for part in line.split("|"))
        tenses = [_TENSES[letter] for letter in tenses[0]]
        base, third, past, ing, *particle = english
        infinitive, participle, gerund, *auxiliary = italian
        verbs[" ".join([base, *particle])] = Verb(
            *(base, third, past, ing),
            " ".join(particle),
            infinitive,
            present(infinitive),
            future(infinitive),
            gerund,
            participle,
            *(auxiliary or ["avere"]),
            frozenset(tenses),
            frozenset(objects),
            frozenset(places),
        )
    return verbs


VERBS = _verbs("""
work works worked working | lavorare lavorato lavorando | PNWFI | | home town out with
sleep sleeps slept sleeping | dormire dormito dormendo | PNWI | | home
dance dances danced dancing | ballare ballato ballando | PNWI | | home park with
sing sings sang singing | cantare cantato cantando | PNWI | | home park with
swim swims swam swimming | nuotare nuotato nuotando | PWI | | sea with
talk talks talked talking | parlare parlato parlando | NWI | | home with only
eat eats ate eating | mangiare mangiato mangiando | PNWI | food | home table with
drink drinks drank drinking | bere bevuto bevendo | PNWI | drink | home table
read reads read reading | leggere letto leggendo | PNWI | read | home park
write writes wrote writing | scrivere scritto scrivendo | NWI | written | home
buy buys bought buying | comprare comprato comprando | WFI | food thing | town market
see sees saw seeing | vedere visto vedendo | WFI | person kin seen |
find finds found finding | trovare trovato trovando | WI | carried |
lose loses lost losing | perdere perso perdendo | W | carried |
help helps helped helping | aiutare aiutato aiutando | WFI | person kin |
wait waits waited waiting for | aspettare aspettato aspettando | NW | person kin ride | station
look looks looked looking for | cercare cercato cercando | NW | carried animal |
listen listens listened listening to | ascoltare ascoltato ascoltando | NWI | heard | home
call calls called calling | chiamare chiamato chiamando | WFI | person kin |
open opens opened opening | aprire aperto aprendo | WI | opened |
clean cleans cleaned cleaning | pulire pulito pulendo | NWI | cleaned |
take takes took taking | prendere preso prendendo | PWI | ride | with
play plays played playing | suonare suonato suonando | PNI | instrument | home with
give gives gave giving | dare dato dando | WFI | carried |
go goes went going | andare andato andando essere | PWFI | | to with
come comes came coming | venire venuto venendo essere | WFI | | to with
arrive arrives arrived arriving | arrivare arrivato arrivando essere | WF | | town station
leave leaves left leaving | partire partito partendo essere | WFI | | for with
return returns returned returning | tornare tornato tornando essere | WFI | | from
""")
AVERE, ESSERE = present("avere"), present("essere")
STARE = ("sto", "stai", "sta", "stiamo", "stanno")

# What is played, and the languages: verb and object are translated as one.
GAMES = (
    Adverbial("football", "a calcio"),
    Adverbial("tennis", "a tennis"),
    Adverbial("cards", "a carte"),
)
LANGUAGES = (
    Adverbial("Italian", "italiano"),
    Adverbial("English", "inglese"),
    Adverbial("French", "francese"),
)
# What is no deed: to know and to love somebody.
STATES = _verbs("""
know knows knew knowing | conoscere conosciuto conoscendo | P | person kin |
love loves loved loving | amare amato amando | P | kin |
""")
FIXED = _verbs("""
play plays played playing | giocare giocato giocando | PNWI | game | park home with
speak speaks spoke speaking | parlare parlato parlando | PI | language | with
study studies studied studying | studiare studiato studiando | NWI | language | home town with
""")


class Modal(NamedTuple):
    """A verb before an infinitive, or before "that": it has no object of its own."""

    english: str
    third: str
    italian: tuple[str, ...]


WANT = Modal("want to", "wants to", ("voglio", "vuoi", "vuole", "vogliamo", "vogliono"))
CAN = Modal("can", "can", ("posso", "puoi", "può", "possiamo", "possono"))
HAVE_TO = Modal("have to", "has to", ("devo", "devi", "deve", "dobbiamo", "devono"))
HOPE = Modal("hope to", "hopes to", tuple(f"{form} di" for form in present("sperare")))
SAY = Modal("say", "says", present("dire"))
KNOW = Modal("know", "knows", ("so", "sai", "sa", "sappiamo", "sanno"))

NAMES = {"Anna": "f", "Elena": "f", "Giulia": "f", "Marco": "m", "Luca": "m", "Paolo": "m"}

POSSESSIVES = {
    "my": ("mio", "mia", "miei", "mie"),
    "your": ("tuo", "tua", "tuoi", "tue"),
    "his": ("suo", "sua", "suoi", "sue"),
    "her": ("suo", "sua", "suoi", "sue"),
    "our": ("nostro", "nostra", "nostri", "nostre"),
    "their": ("loro",) * 4,
}
NUMBERS = {"two": "due", "three": "tre", "five": "cinque"}

# Conditions that Italian has, not is.
HAVING = (
    Adverbial("hungry", "fame"),
    Adverbial("thirsty", "sete"),
    Adverbial("in a hurry", "fretta"),
)

_CITIES = {"Rome": "Roma", "Milan": "Milano", "Paris": "Parigi"}
_COUNTRIES = {"Italy": "Italia", "France": "Francia"}


def _adverbials(text: str) -> tuple[Adverbial, ...]:
    return tuple(
        Adverbial(*(side.strip() for side in line.split("|"))) for line in text.strip().splitlines()
    )


PLACES = {
    "home": _adverbials("""
        at home | a casa
        in the kitchen | in cucina
        in the garden | in giardino
    """),
    "out": _adverbials("""
        at the restaurant | al ristorante
        at the station | alla stazione
        at the stadium | allo stadio
        at the market | al mercato
    """),
    "table": _adverbials("at the restaurant | al ristorante"),
    "market": _adverbials("at the market | al mercato"),
    "station": _adverbials("at the station | alla stazione"),
    "park": _adverbials("in the park | nel parco"),
    "sea": _adverbials("in the sea | nel mare"),
    "town": (
        *(Adverbial(f"in {english}", f"a {italian}") for english, italian in _CITIES.items()),
        *(Adverbial(f"in {english}", f"in {italian}") for english, italian in _COUNTRIES.items()),
    ),
    "to": (
        *(Adverbial(f"to {english}", f"a {italian}") for english, italian in _CITIES.items()),
        *(Adverbial(f"to {english}", f"in {italian}") for english, italian in _COUNTRIES.items()),
        *_adverbials("""
            to the restaurant | al ristorante
            to the station | alla stazione
            to the stadium | allo stadio
            to the market | al mercato
            to the park | al parco
            to school | a scuola
            to the sea | al mare
        """),
    ),
    "for": (
        *(Adverbial(f"for {english}", f"per {italian}") for english, italian in _CITIES.items()),
        *(
            Adverbial(f"for {english}", f"per l'{it}" if it[0] == "I" else f"per la {it}")
            for english, it in _COUNTRIES.items()
        ),
    ),
    "from": (
        *(Adverbial(f"from {english}", f"da {italian}") for english, italian in _CITIES.items()),
        *(
            Adverbial(f"from {english}", f"dall'{it}" if it[0] == "I" else f"dalla {it}")
            for english, it in _COUNTRIES.items()
        ),
        *_adverbials("""
            from school | da scuola
            from the station | dalla stazione
            from the market | dal mercato
        """),
    ),
}
_DAYS = {
    "Monday": "lunedì",
    "Saturday": "sabato",
    "Sunday": "domenica",
}
_HOURS = {"one": "all'una", "seven": "alle sette", "nine": "alle nove"}
HOURS = tuple(Adverbial(f"at {english}", italian) for english, italian in _HOURS.items())
ON_DAY = tuple(Adverbial(f"on {english}", italian) for english, italian in _DAYS.items())
TIMES = {
    "present": (
        *(
            Adverbial(f"on {english}s", f"{'la' if italian.endswith('a') else 'il'} {italian}")
            for english, italian in _DAYS.items()
        ),
        *_adverbials("""
            every day | ogni giorno
            in the morning | la mattina
            in the evening | la sera
            """),
    ),
    "progressive": _adverbials("now | adesso"),
    "past": (
        *ON_DAY,
        *_adverbials("""
            yesterday | ieri
            this morning | stamattina
            last week | la settimana scorsa
        """),
        *(
            Adverbial(f"{english} days ago", f"{italian} giorni fa")
            for english, italian in NUMBERS.items()
        ),
    ),
    "future": (
        *ON_DAY,
        *_adverbials("""
            tomorrow | domani
            tonight | stasera
            next week | la prossima settimana
        """),
        *(
            Adverbial(f"in {english} days", f"tra {italian} giorni")
            for english, italian in NUMBERS.items()
        ),
    ),
    "infinitive": (
        *ON_DAY,
        *_adverbials("""
            today | oggi
            tonight | stasera
            tomorrow | domani
        """),
    ),
}
FREQUENCIES = (
    Adverbial("always", "sempre"),
    Adverbial("often", "spesso"),
    Adverbial("never", "mai"),
)
