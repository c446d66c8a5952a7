"""A small grammar of sentences with named entities that context, not vocabulary, tells apart.

Persons (PER), organisations (ORG), places (LOC) and the rest (MISC: nationalities, languages,
events, works) are tagged in IOB2 (Tjong Kim Sang & Veenstra 1999), tokens are those of CoNLL-2003.
The same name is another thing in another sentence:

================================================================ ==================
sentence                                                         entities
================================================================ ==================
Washington scored twice as Leeds beat Chelsea 3-1 .              PER, ORG, ORG
Washington beat Chelsea 3-1 on Sunday .                          ORG, ORG
It rained in Washington , and nobody had asked it to .           LOC
Ford said on Monday it would buy Heinz for $ 3.2 billion .       ORG, ORG
Ford said on Monday he would retire to Paris .                   PER, LOC
The film Lincoln was shown in Lincoln yesterday .                MISC, LOC
Will Turner will mark Carter when Leeds meet Everton on Sunday . PER, PER, ORG, ORG
Will Turner sign for Leeds ?                                     PER, ORG
================================================================ ==================

For every template the question was asked whether a careful reader could tag a sentence of it who
had never met its names, and the answer had to be yes: it is in the words around them (a score, a
pronoun, a profession, a preposition) or inside them ("University of", "Airlines").

A template is a list of words with slots in braces. A slot is an entity of `ENTITIES`, a clause of
`CLAUSES`, a pronoun or one of `WORDS`; `#` is a digit from 2 to 9. About half of the entities are
made of shared names, which all splits use, the others of rare ones, of which dev and test have
their own (see `names`). The module needs only the standard library.
"""

import random
import re
from collections.abc import Sequence
from typing import NamedTuple

from rnnapps.data.datasets.sample_entities import names

TYPES = ("PER", "ORG", "LOC", "MISC")
SPLIT_SIZES = {"train": 3000, "dev": 500, "test": 1000}

# Kept for showing a trained model something it has never seen.
HELD_OUT = "Luke joined Google as a data scientist in Mountain View"
HELD_OUT_TAGS = "B-PER O B-ORG O O O O O B-LOC I-LOC"

SLOT = re.compile(r"\{(\w+)\}")

SENTENCES = {
    "sport": (
        "{club} beat {club} {score} {when} .",
        "{club} beat {club} {score} .",
        "{club} lost {score} at home to {club} {when} .",
        "{club} and {club} drew {draw} in front of #,#00 {wet} fans .",
        "{surname} scored twice as {club} beat {club} {score} .",
        "A late goal by {surname} gave {club} a {score} win over {club} .",
        "{club} {position} {full} will miss the match against {club} with a broken {bone} .",
        "{club} have signed {nationality} {position} {full} from {club} for {money} .",
        "{nationality} {position} {full} has left {club} after # seasons and no goals .",
        "{club} manager {full} blamed the {excuse} .",
        "{club} 's manager , {full} , blamed the {excuse} , the {excuse} and {surname} .",
        "{full} , the {club} {position} , missed a penalty and then the team bus .",
        "Will {surname} sign for {club} ?",
        "Will {surname} stay at {club} , or will {he} {sign} for {club} ?",
        "Will {full} play for {club} again ?",
        "Will {club} ever win a match under {surname} ?",
        "{full} will mark {surname} when {club} meet {club} {when} .",
        "{given} {will_or_may} play for {club} {when} , but nobody knows in which position .",
        "{club} v {club}",
        "{club} v {club} ( {time} )",
        "{club} # {club} #",
        "Fixtures on {day} : {club} v {club} , {club} v {club} , {club} v {club} .",
        "{club} 1# # # # 2# 1# 2#",
        "# . {full} {country} #.##",
        "# . {full} {country} 2#:4#.#",
        "1# . {full} ( {country} ) {company} 1:3#:2#",
        "{surname} c {surname} b {surname} ##",
        "Chess , round # : {surname} {surname} 1-0",
        "Chess , round # : {surname} {surname} 0-1 , {surname} {surname} 1/2",
        "Referee : {full} ( {country} )",
        "Scorers for {club} : {surname} ( 1# ) , {surname} ( 7# )",
        "{full} beat {full} 6-4 7-5 in the final of the {event} .",
        "{nationality} {full} won the {event} in 2:0#:3# , in borrowed shoes .",
        "{surname} beat {surname} 6-4 6-2 {when} .",
        "Neither {club} nor {club} has scored since {month} .",
        "Who coaches {club} these days ?",
        "Top seed {surname} beat {nationality} qualifier {full} 6-3 6-1 {when} .",
        "{full} , who grew up in {place} , swam the 200 metres in a national record .",
        "{club} fans on their way to {city} are asked to leave their {instruments} at home .",
        "{club} 's new stadium in {city} has no roof , no seats and no grass .",
        "After ## years at {club} , {surname} is to play for {club} .",
        "Nobody at {club} expected {surname} to score with {his} back .",
        "{club} coach {full} took off {surname} and sent on {surname} , {his} cousin .",
        "The {nationality} {position} was sent off in {city} for laughing at {surname} .",
        "{surname} 's header put {club} ahead , and {surname} 's own goal put them level .",
        "The {event} was won by {full} of {country} , who had lost the way in {city} .",
        "{full} , ## , will ride {his} last {event} for {club} .",
    ),
    "business": (
        "{company} said {when} it would buy {company} for {money} .",
        "{surname} said {when} {he} would retire to {place} .",
        "{company} said {when} that its profits had {risen} by {percent} .",
        "{surname} said {when} that {his} dog had eaten the contract .",
        "Shares in {company} {moved} {percent} {when} .",
        "{company} shares {moved} after {full} {had_left} .",
        "{full} , {chairman} of {company} , told reporters in {city} that {fact} .",
        "{company} will open a {factory} in {place} {next_time} .",
        "{company} and {company} have agreed to merge their {departments} .",
        "{full} founded {namesake} in {city} in 19## .",
        "{full} founded {namesake} in 18## with ## {things} and a borrowed horse .",
        "The {bank} cut its key rate to #.# percent .",
        "{bank} governor {full} said inflation was {percent} , give or take .",
        "{company} 's {chairman} , {full} , owns # percent of the company and a boat .",
        "Workers at the {company} {factory} in {place} went on strike {when} .",
        "{company} is moving its head office from {city} to {city} .",
        "A judge in {city} fined {company} {money} and closed its {factory} .",
        "{company} , which makes {goods} , has made {person} its {chairman} .",
        "{company} buys its {goods} from {company} and its coffee in {country} .",
        "Why did {company} close its {factory} in {place} ?",
        "Merger talks between {company} and {company} ended {when} in a {city} sauna .",
        "{company} {chairman} {full} denied that {fact} .",
        "{company} , based in {place} , exports {goods} to {country} and {country} .",
        "Its rival {company} sells fewer {things} but more {things} .",
        "{person} resigned from {company} by postcard from {place} .",
        "{mister} {surname} sold {his} shares in {company} {when} and bought {goods} .",
        "{full} , chief economist at {bank} , expects {goods} to cost {percent} more .",
        "{company} has recalled #,#00 {things} that hum .",
        "Neither {company} nor {company} pays its trainees .",
        "Who owns {company} shares , and why ?",
        "A {nationality} firm called {company} sells {goods} in a town called {city} .",
        "{company} {chairman} {full} told the {paper} that {fact} and that {fact} .",
        "The {company} board will meet in {city} on {month} ## .",
    ),
    "careers": (
        *("{person} joined {company} as {a_job} in {place} {stop}",) * 3,
        "{person} joined {company} as {a_job} {stop}",
        "{person} joined {company} in {city} as {a_job} {stop}",
        "{person} resigned from {company} to become {a_job} in {place} {stop}",
        "{person} started at {company} as {a_job} in {place} {stop}",
        "{person} works for {company} as {a_job} in {place} {stop}",
        "{person} was hired by {company} as {a_job} in {place} {stop}",
        "{person} is {a_job} at {company} in {place} {stop}",
        "{person} went to {place} as {a_job} for {company} {stop}",
        "After # years at {company} , {person} joined {company} as {a_job} in {place} .",
        "In {month} {person} joined {company} as its first {job} .",
        "{person} , {a_job} from {place} , has joined {company} .",
        "{given} and {given} joined {company} as trainees in {place} and left as a couple {stop}",
        "{person} taught at {university} before {he} joined {company} as {a_job} .",
        "{person} studied {subject} at {university} and became {a_job} in {place} {stop}",
        "{person} lives in {place} and works as {a_job} for the {agency} {stop}",
        "{company} has a vacancy for {a_job} in {place} {stop}",
    ),
    "politics": (
        "{nationality} president {full} arrived in {city} {when} for talks .",
        "President {surname} flew from {city} to {city} to meet {nationality} farmers .",
        "{full} , mayor of {city} , promised that {fact} .",
        "Prime Minister {surname} will visit {country} in {month} .",
        "{country} and {country} signed a treaty on {goods} in {city} .",
        "The people of {country} eat more {things} than the people of {country} .",
        "The {agency} sent # observers and a cook to {country} .",
        "{nationality} troops crossed the {river} near {city} {when} .",
        "Voters in {city} re-elected {full} {when} .",
        "The {party} won ## seats in {place} .",
        "{full} of the {party} called {mister} {surname} a turnip and apologised to the turnip .",
        "The {ministry} denied that {fact} .",
        "{nationality} foreign minister {full} said {he} had never been to {place} .",
        "Police in {city} arrested {full} , a {nationality} {profession} , {when} .",
        "{country} closed its border with {country} {when} .",
        "{country} imported ##,#00 {things} from {country} last year .",
        "The {agency} warned {country} against {nationality} {goods} .",
        "Senator {surname} spoke for # hours , mostly about {his} {relative} in {place} .",
        "The bill was opposed by {mister} {surname} , Senator {surname} and everyone in {place} .",
        "Will the {party} vote for the bill ? {full} will not say .",
        '" {remark} , " said {surname} .',
        '" {remark} , " {full} told the {paper} .',
        '" {city} is not for sale , " said Mayor {surname} .',
        "{nationality} is now an official language in {country} .",
        "{surname} 's {relative} is standing for the {party} in {place} .",
        "The {nationality} ambassador to {country} , {full} , asked for a chair .",
        "Refugees from {country} reached the {river} {when} , the {agency} said .",
        "{city} 's mayor , {full} , opened the bridge twice , once for the {paper} .",
    ),
    "biography": (
        "{full} was born in {place} in 19## and studied {subject} at {university} .",
        "{full} ( 188#-194# ) was a {nationality} {profession} .",
        "{given} married {full} in {place} in 19## .",
        "{full} , the child of {a_job} , grew up in {place} and {place} .",
        "Born in {city} , {surname} moved to {country} at the age of # .",
        "{surname} taught {subject} at {university} until {his} death .",
        "{given} speaks {nationality} , some {nationality} and to {his} plants .",
        "{initialled} wrote the novel {work} in ## days and regretted it for ## years .",
        "{full} , a {profession} , died in {place} {when} . {he_begins} was 9# .",
        "{surname} , whose {relative} was {nationality} , never learnt to swim .",
        "{given} met {given} on a bench in {city} .",
        "Neither {given} nor {given} can whistle .",
        "A {profession} called {full} met one called {surname} in a town called {city} .",
        "{given} was named after {his} {relative} , and the dog after {given} .",
        "The {profession} {full} lived in {city} for ## years without unpacking .",
        "{mister} {surname} left {place} in 19## and never spoke of {goods} again .",
        "{full} won a {prize} for {his} work on {goods} .",
        "{full} held the chair of {subject} at {university} , until it broke .",
        "In 19## {surname} went to {city} to see the {profession} {full} and stayed .",
        "{surname} 's {relative} , {full} , was {a_job} in {place} .",
        "May {full} rest in peace .",
        "{initialled} was a {profession} , a liar and the best cook in {place} .",
        "{full} and {full} were married by {surname} , the ship 's {job} .",
        "The king knighted {full} , {a_job} , for services to {goods} .",
    ),
    "travel": (
        "The train from {city} to {city} leaves at {time} , if it leaves .",
        "{given} flew to {place} with a suitcase full of {goods} .",
        "It {rains} in {place} , and nobody had asked it to .",
        "It {rains} in {city} , but it {rains} more in {city} .",
        "The {river} is longer than the {river} , and wetter .",
        "{given} fell into the {river} near {city} , and {given} laughed .",
        "{city} is nice in {month} , but {city} is nicer .",
        "We spent a week in {place} and never found the sea .",
        "Dear {given} , {city} is lovely and the soup is cold . Love , {given}",
        "Greetings from {place} !",
        "{city} : 2# degrees , light rain",
        "Turn left at {landmark} and ask for {given} .",
        "The bus from {landmark} to {landmark} was driven by {a_job} .",
        "{airline} cancelled its flights to {place} because of the {excuse} .",
        "In {country} you tip the waiter , in {country} the waiter tips you .",
        "On the road to {place} we met {a_job} called {given} .",
        "{given} and {given} got lost in {city} with a map of {city} .",
        "A flat in {city} costs as much as a castle in {country} .",
        "The boat down the {river} stops in {city} for {goods} .",
        "{person} has been to {place} # times , each time by mistake .",
        "{people} drink more tea than {people} .",
        "The {people} at the next table sang {nationality} songs until {given} wept .",
        "From {landmark} you can see {country} on a clear day .",
        "No visit to {place} is complete without a row about {goods} .",
        "Bath time is at six , said a sign in a hotel in {place} .",
        "Reading in bed is banned in {place} , says {airline} 's guide .",
        "Neither {city} nor {city} has an airport .",
        "Where is {place} , and who is {full} ?",
        "Is {city} north of {city} ?",
    ),
    "culture": (
        "The film {work} was shown in {place} {when} .",
        "{full} will play the {profession} in the musical {work} .",
        '" {title} " by {full} opened in {city} {when} .',
        'Have you read " {title} " by {initialled} ?',
        "The {paper} called the novel {work} a triumph of {goods} over plot .",
        "The {orchestra} played {surname} 's {ordinal} symphony in {city} .",
        "The {orchestra} has lost its {nationality} conductor , {full} , and {his} baton .",
        "Tickets for the {event} are sold out , said {full} , who has # .",
        "{full} read {nationality} poems at the {event} until the {job} left .",
        "A portrait of {full} was stolen from the {museum} {when} .",
        "The {museum} has bought ## {things} by the {profession} {surname} .",
        '{surname} \'s new novel , " {title} , " is set in {place} .',
        'In " {title} " {full} plays {a_job} who falls in love with {a_job} .',
        "{full} wrote an article about {goods} for the {paper} .",
        "Who wrote {work} , and who has read it ?",
        "The hero of a novel called {work} is a {job} called {given} from a town called {city} .",
        "The opera {work} lasts # hours , and {given} slept through # .",
        "The {profession} {full} is the first {nationality} guest of the {event} .",
        "{given} sang at the {event} , and the {paper} forgave {him} .",
        "The {paper} printed a letter from {mister} {surname} of {place} .",
        "In {work} , the novel by {surname} , nothing happens , slowly .",
        "{nationality} {profession} {full} has translated the novel {work} into {nationality} .",
        "The {museum} in {city} is closed on {days} and whenever it snows .",
        "{full} dances the title role in the ballet {work} at the {museum} .",
    ),
    "wordplay": (
        "Mark my words : {given} will be back in {place} by {month} .",
        "Mark the date : the {event} begins on {month} # .",
        "{given} paid the bill , and {given} paid for it .",
        "{given} will drive , {given} may sing and {given} must not .",
        "Hope is fading in {place} that {club} will ever win the league .",
        "{given} hopes to grow a rose for {given} by {month} .",
        "Will {given} be frank ? {given} will .",
        "May I mark this ? asked {given} .",
        "The price rose , {given} rose , and the {company} {chairman} left .",
        "Frank talks in {city} between {full} and {mister} {surname} ended in a chase .",
        "{given} was given a grant by {university} to chase butterflies in {place} .",
        "To be frank , {given} drew a blank and {given} drew a horse .",
        "{given} may leave in May , or {he} will leave in April .",
        "In June and July {given} is reading in {city} , not writing .",
        "{given} had a bath in {city} and a nice page to read .",
        "An apple a day keeps {mister} {surname} away .",
        "Grant or no grant , {person} will move to {place} .",
        "Rose bushes from {place} are dearer than turkeys from {country} .",
        "{given} ran ## miles in {place} for the grace of a good cook .",
        "A green shell was found in {place} , and the {company} board wants it back .",
        "The cook , {given} , and the baker , {given} , are both from {place} .",
        "Major roads into {place} are closed because of {goods} .",
        "Young readers of the {paper} ask why {mister} {surname} is so old .",
        "Page ## of the {paper} is about {full} and {his} {goods} .",
        "Green is the colour of {club} 's new shirts , says {given} , and of envy .",
        "Apple pie is cheaper in {country} than in {country} .",
        "Price is no object , said {given} , and left {place} without paying .",
        "{full} rose , {full} drew a target , and the jury in {city} chose the rose .",
    ),
    "headline": (
        "{club} beat {club} {score}",
        "{club} sign {full}",
        "Soccer - late goal gives {club} win over {club} .",
        "Tennis - {surname} beats {surname} in {city} .",
        "{surname} joins {company} as {chairman}",
        "{surname} resigns over {goods}",
        "{surname} , 2# , wins {event}",
        "{company} to cut ### jobs in {place}",
        "{company} profit rises {percent}",
        "Floods hit {place}",
        "Fire at {company} {factory} in {city}",
        "{nationality} president visits {country}",
        "{agency} warns {country} over {goods}",
        "Police in {city} find {goods} in {river_or_lake}",
    ),
}

CLAUSES = {
    "fact": (
        "{surname} had never been to {place}",
        "{given} was in {city} at the time",
        "{city} was the wettest town in {country}",
        "the bridge over the {river} would be closed until {month}",
        "{nationality} {things} were too loud",
        "{club} would sell their goalkeeper , {surname}",
        "the {company} board had lost its keys",
        "{mister} {surname} had sold {goods} to {country}",
        "its {factory} in {city} was haunted",
        "there were {things} in the {river}",
    ),
    "remark": (
        "We have nothing to hide in {place} but {goods}",
        "I have never met {full} , and I never will",
        "You cannot buy {goods} in {city} after six",
        "{country} needs fewer {nationality} films and more {things}",
        "The {agency} has our telephone number",
        "I learnt {nationality} from {surname} 's parrot",
    ),
}

# What has a name: its type, and how its names are written.
ENTITIES = {
    "full": (
        "PER",
        *("{first} {surname}",) * 12,
        "{first} {initial} {surname}",
        "{initial} {surname}",
        "{initial} {initial} {surname}",
    ),
    "initialled": ("PER", "{initial} {surname}", *("{initial} {initial} {surname}",) * 2),
    "given": ("PER", "{first}"),
    "surname": ("PER", "{surname}"),
    "person": ("PER", *("{first}",) * 5, *("{first} {surname}",) * 4, "{initial} {surname}"),
    "city": ("LOC", "{city}"),
    "country": ("LOC", "{country}"),
    "place": (
        "LOC",
        *("{city}",) * 9,
        *("{country}",) * 2,
        "{side} {city}",
        "{side} {city}",
        *("{two_word} {second_word}",) * 4,
        "Port {surname}",
        "San {male}",
        "Lake {first}",
    ),
    "landmark": ("LOC", *("{city} {landmark}",) * 2, "{surname} {landmark}", "Mount {surname}"),
    "river": ("LOC", "{river}"),
    "river_or_lake": ("LOC", "River {river}", "Lake {first}"),
    "club": (
        "ORG",
        *("{club}",) * 8,
        *("{club} {team}",) * 4,
        "{prefix} {club}",
        "{prefix} {city}",
        "{side} {club}",
    ),
    "company": (
        "ORG",
        *("{company}",) * 8,
        *("{company} {trade}",) * 3,
        "{surname} & {kin}",
        "{surname} & {surname}",
        "{company} {legal}",
    ),
    "namesake": ("ORG", "{namesake}", "{namesake}", "{namesake} {trade}", "{namesake} & {kin}"),
    "airline": ("ORG", "{company} Airlines", "Air {country}", "{nationality} Airways"),
    "bank": ("ORG", "Bank of {country}", "Bank of {city}", "{city} Savings Bank"),
    "university": (
        "ORG",
        *("University of {city}",) * 2,
        *("{city} University",) * 2,
        "{surname} College",
        "{city} Institute of Technology",
    ),
    "paper": ("ORG", "{city} {newspaper}"),
    "orchestra": ("ORG", "{city} {orchestra}"),
    "museum": ("ORG", "{city} {museum}", "{surname} {museum}"),
    "agency": ("ORG", "{agency}"),
    "wire": ("ORG", "Reuters"),
    "party": ("ORG", "{movement} Party", "{nationality} {movement} Party"),
    "ministry": ("ORG", "Ministry of {portfolio}", "{nationality} Ministry of {portfolio}"),
    "nationality": ("MISC", "{nationality}"),
    "people": ("MISC", "{people}"),
    "event": ("MISC", *("{city} {event}",) * 3, "{nationality} {event}", "{festival}"),
    "prize": ("MISC", "{surname} Prize", "Nobel Prize", "{surname} Medal"),
    "work": ("MISC", *("{work}",) * 3, "The {adjective} {heroine}"),
    "title": (
        "MISC",
        "The {adjective} {heroine}",
        "The {heroine} of {city}",
        "Letters to {first}",
        "A Winter in {city}",
        "{first} and the {heroine}",
        "Goodbye {city}",
        "{work}",
    ),
}

# Parts of names that say what is named, by slot.
PARTS = {
    "initial": tuple(f"{letter}." for letter in "ABCDEFGHIJKLMNOPRSTUVWXYZ"),
    "side": ("New", "North", "South", "East", "West", "Upper"),
    "second_word": ("View", "Falls", "Springs", "Hills", "Beach", "Ridge", "Creek", "Rapids"),
    "landmark": ("Street", "Station", "Bridge", "Square", "Airport", "Park", "Road", "Castle"),
    "team": ("United", "City", "Rovers", "Town", "Athletic", "Wanderers"),
    "prefix": ("FC", "Real", "Sporting", "Dynamo"),
    "trade": ("Motors", "Foods", "Airlines", "Holdings", "Group", "Steel", "Insurance", "Bank"),
    "legal": ("Inc.", "Ltd.", "Corp."),
    "kin": ("Sons", "Daughters", "Co."),
    "newspaper": ("Review", "Times", "Gazette", "Herald", "Post", "Courier"),
    "orchestra": ("Symphony Orchestra", "Philharmonic", "Chamber Choir"),
    "museum": ("Museum of Modern Art", "Gallery", "Museum", "Opera House"),
    "movement": ("Green", "Liberal", "People 's", "Farmers '", "Workers '", "Beer Lovers '"),
    "portfolio": ("Finance", "Fisheries", "Defence", "Weather", "Tea"),
    "event": ("Marathon", "Open", "Grand Prix", "Film Festival", "Book Fair", "Cup"),
    "festival": ("World Cup", "Olympic Games", "Eurovision Song Contest", "Tour de France"),
    "adjective": (
        *("Silent", "Last", "Reluctant", "Invisible", "Melancholy", "Flying", "Young", "Green"),
    ),
}

WORDS = {
    "stop": (".", ".", ""),
    "a_job": ("a {job}",),
    "score": ("1-0", "2-0", "2-1", "3-0", "3-1", "3-2", "4-1", "5-2"),
    "draw": ("0-0", "1-1", "2-2", "3-3"),
    "when": (
        *("on Monday", "on Tuesday", "on Wednesday", "on Thursday", "on Friday", "on Saturday"),
        *("on Sunday", "yesterday", "last week", "late on Sunday", "in May", "in April"),
    ),
    "next_time": ("next year", "in June", "in May", "soon", "next week"),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "days": ("Mondays", "Tuesdays", "Thursdays", "Sundays"),
    "month": (
        *("January", "February", "March", "April", "May", "June", "July", "August"),
        *("September", "October", "November", "December"),
    ),
    "time": ("9:05", "11:40", "14:30", "15:00", "17:15", "20:45"),
    "wet": ("wet", "frozen", "silent", "patient", "elderly", "hopeful"),
    "position": ("striker", "goalkeeper", "midfielder", "defender", "winger", "captain"),
    "bone": ("toe", "leg", "finger", "nose", "wrist"),
    "excuse": ("referee", "pitch", "moon", "weather", "soup", "wind", "fog", "band"),
    "instruments": ("drums", "trumpets", "bagpipes", "dogs", "saucepans"),
    "sign": ("sign", "play"),
    "will_or_may": ("will", "may"),
    "money": ("$ #.# million", "$ ## million", "$ #.# billion", "## million euros"),
    "percent": ("# percent", "#.# percent", "1# percent"),
    "moved": ("fell", "rose", "dropped", "jumped"),
    "risen": ("risen", "fallen", "grown", "shrunk"),
    "had_left": ("resigned", "became chairman", "left for lunch", "was arrested", "joked"),
    "chairman": ("chairman", "founder", "owner", "finance director", "chief executive"),
    "factory": ("factory", "plant", "laboratory", "shop", "canteen", "research centre"),
    "departments": ("canteens", "factories", "choirs", "football teams", "truck divisions"),
    "goods": ("{things}", "{things}", "{things}", "cheese", "china", "wool", "timber", "polish"),
    "things": (
        *("umbrellas", "bicycles", "tulips", "apples", "oranges", "turkeys", "shells", "herrings"),
        *("pianos", "teapots", "sausages", "buttons", "hats", "roses", "potatoes", "onions"),
    ),
    "job": (
        *("data scientist", "software engineer", "pastry chef", "lighthouse keeper", "welder"),
        *("night watchman", "accountant", "translator", "beekeeper", "crane driver", "vet"),
        *("junior analyst", "web designer", "sound engineer", "tea taster", "tax adviser"),
        *("lawyer", "cook", "baker", "page", "king of sales", "research scientist", "cleaner"),
    ),
    "profession": (
        *("poet", "painter", "chemist", "botanist", "composer", "novelist", "cellist", "spy"),
        *("sculptor", "explorer", "philosopher", "surgeon", "conjuror", "tenor"),
    ),
    "subject": ("law", "botany", "chemistry", "economics", "music", "theology", "marine biology"),
    "relative": ("mother", "father", "uncle", "aunt", "cousin", "dentist"),
    "mister": ("Dr.", "Professor", "Judge", "Major", "Captain"),
    "ordinal": ("first", "third", "fifth", "last", "unfinished"),
    "rains": ("rained", "poured", "snowed", "drizzled"),
}

PRONOUNS = {
    "he": ("he", "she"),
    "he_begins": ("He", "She"),
    "him": ("him", "her"),
    "his": ("his", "her"),
}

POOLS = {
    "female": names.FEMALE,
    "male": names.MALE,
    "surname": names.SURNAME,
    "city": names.CITY,
    "two_word": names.TWO_WORD_PLACE,
    "country": names.COUNTRY,
    "nationality": names.NATIONALITY,
    "people": names.PEOPLE,
    "river": names.RIVER,
    "club": names.CLUB,
    "company": names.COMPANY,
    "agency": names.AGENCY,
    "work": names.WORK,
    "heroine": names.HEROINE,
}

# Between the place of a dateline and what happened there.
DATELINES = ("199#-0#-1# -", "( {wire} ) -")

# How often a sentence is of a register.
REGISTERS = (
    *("sport",) * 4,
    *("business",) * 3,
    *("careers",) * 3,
    *("politics",) * 3,
    *("biography",) * 2,
    *("travel",) * 3,
    *("culture",) * 2,
    *("wordplay",) * 2,
    "headline",
)
_NEWS = ("sport", "business", "politics")


class Sentence(NamedTuple):
    """One generated sentence; `register` is the kind of text it is from."""

    tokens: tuple[str, ...]
    tags: tuple[str, ...]
    register: str


def splits() -> dict[str, list[Sentence]]:
    """Generates the splits, the same ones on every machine.

    No sentence comes twice, and `HELD_OUT` does not come at all; letter case and punctuation do not
    make a sentence another one.

    Returns:
        The sentences of `train`, `dev` and `test`, as many as `SPLIT_SIZES` says.

    Example:
    >>> train = splits()["train"]
    >>> len(train)
    3000
    """
    seen = {_key(HELD_OUT.split())}
    result = {}
    for split, size in SPLIT_SIZES.items():
        writer = _Writer(random.Random(f"rnnapps sample entities 1.0.0 {split}"), split == "train")
        result[split] = []
        while len(result[split]) < size:
            sentence = writer.sentence()
            key = _key(sentence.tokens)
            if key not in seen:
                seen.add(key)
                result[split].append(sentence)
    return result


class _Writer:
    """Writes sentences; within one, no name comes twice for things of the same type."""

    def __init__(self, rng: random.Random, is_train: bool):
        self._rng = rng
        self._is_train = is_train

    def sentence(self) -> Sentence:
        register = self._choose(REGISTERS)
        self._is_female = self._chance(0.5)
        self._taken = []  # the types and names so far
        tagged = self._expand(self._choose(SENTENCES[register]))
        tagged[0] = (tagged[0][0][0].upper() + tagged[0][0][1:], tagged[0][1])
        if register == "headline":
            tagged = [(token.upper(), tag) for token, tag in tagged]
        elif register in _NEWS and self._chance(0.1):
            city = [(token.upper(), tag) for token, tag in self._entity("city")]
            tagged = [*city, *self._expand(self._choose(DATELINES)), *tagged]
        tokens, tags = zip(*tagged, strict=True)
        return Sentence(_with_articles(tokens), tags, register)

    def _expand(self, template: str) -> list[tuple[str, str]]:
        tagged = []
        for word in template.split():
            slot = SLOT.fullmatch(word)
            if not slot:
                tagged.append((self._with_digits(word), "O"))
            elif slot[1] in ENTITIES:
                tagged += self._entity(slot[1])
            elif slot[1] in PRONOUNS:
                tagged.append((PRONOUNS[slot[1]][self._is_female], "O"))
            else:
                tagged += self._expand(self._choose(CLAUSES.get(slot[1]) or WORDS[slot[1]]))
        return tagged

    def _entity(self, kind: str) -> list[tuple[str, str]]:
        kind, *forms = ENTITIES[kind]
        is_rare = self._chance(0.5)
        name = SLOT.sub(lambda slot: self._part(slot[1], kind, is_rare), self._choose(forms))
        tokens = name.replace("_", " ").split()
        return [(token, f"{'I' if index else 'B'}-{kind}") for index, token in enumerate(tokens)]

    def _part(self, slot: str, kind: str, is_rare: bool) -> str:
        if slot in PARTS:
            return self._choose(PARTS[slot])
        if slot == "namesake":
            return self._surname
        if slot == "first":
            slot = "female" if self._is_female else "male"
        pool = POOLS[slot]
        options = pool.rare(self._is_train) if is_rare else pool.shared
        # Now and then something else of the same name: "Jordan flew to Jordan".
        if self._chance(0.2):
            elsewhere = [
                name
                for other, name in self._taken
                if name in options and other != kind and (kind, name) not in self._taken
            ]
            options = elsewhere or options
        name = self._choose(options)
        while (kind, name) in self._taken:
            name = self._choose(options)
        self._taken.append((kind, name))
        if slot == "surname":
            self._surname = name
        return name

    def _with_digits(self, word: str) -> str:
        return re.sub("#", lambda _: self._choose("23456789"), word)

    def _choose(self, options: Sequence):
        # Only `random()` is promised to give the same numbers in every version of Python.
        return options[int(self._rng.random() * len(options))]

    def _chance(self, probability: float) -> bool:
        return self._rng.random() < probability


def _with_articles(tokens: Sequence[str]) -> tuple[str, ...]:
    """Writes "an" where a vowel follows."""
    return tuple(
        f"{token}n" if token in ("a", "A") and re.match("(?i)[aeiou](?!ni|ru|ga)", after) else token
        for token, after in zip(tokens, (*tokens[1:], "."), strict=True)
    )


def _key(tokens: Sequence[str]) -> str:
    return " ".join(re.findall(r"\w+", " ".join(tokens).casefold()))
