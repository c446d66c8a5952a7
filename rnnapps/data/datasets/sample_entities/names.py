"""The names of the sample: shared ones that mean many things, and rare ones of two sets.

Of each kind of name there are three lists:

- *shared*, used in all splits. Most of these names are of several kinds: Jordan is a first name, a
  surname, a country and a river; Chelsea a first name, a district and a club.
- *known*, used in train only,
- *unseen*, used in dev and test only. Each has a word that no sentence of train has.

Many of the rare ones are made of a stem and an ending, like the villages of England, after which
people, clubs and firms are called as well: only context can say which of them a Thornbury is.

A blank within a name is written `_`.
"""

import zlib
from itertools import product
from typing import NamedTuple


class Pool(NamedTuple):
    """The names of one kind, by where they may be used."""

    shared: tuple[str, ...]
    known: tuple[str, ...]
    unseen: tuple[str, ...]

    def rare(self, is_train: bool) -> tuple[str, ...]:
        """The names that a split does not share with the others."""
        return self.known if is_train else self.unseen


def _pool(shared: str, *rare: str) -> Pool:
    known, unseen = [], []
    for name in dict.fromkeys(rare):
        # By its checksum, a name falls on the same side in every pool.
        (known if zlib.crc32(name.encode()) % 3 else unseen).append(name)
    return Pool(tuple(shared.split()), tuple(known), tuple(unseen))


def _joined(stems: str, endings: str) -> tuple[str, ...]:
    return tuple("".join(parts) for parts in product(stems.split(), endings.split()))


_VILLAGES = _joined(
    "Ald Amble Ash Ather Barn Birk Black Bram Brock Brom Burn Carl Chal Clay Cold Cran Crow Dal "
    "Dray Ecker Elling Fair Farn Gains Glen Halls Hard Hasle Hawk Hazel Hether Kel Kirk Lang Lin "
    "Lud Marl Mel Middle Nether Oak Oxen Pem Raven Red Rush Sel Shel Stan Swin Thorn Thur Wake "
    "Wad Wal Wester Whit Wim Win Wood",
    "bourne bridge brook burgh bury by combe cote dale den field ford gate grave ham hurst leigh "
    "ley more thorpe ton well wick worth",
)
# Names that sound like no language in particular, with endings of ordinary words, too.
_INVENTED = _joined(
    "Ba Cor Del Eb Fi Gal Hu Jo Kan Lu Mor Ni Os Pol Qua Ril Sil Tor Ul Vel Yar Zan",
    "bador bal cado dool fio gest gor kas lanta mar medo mic nal ner pool rado ric sio tan tel "
    "ting tul vel wan zem",
)

FEMALE = _pool(
    "Adelaide April Carolina Charlotte Chelsea Emma Florence Georgia Grace Hope Jordan Madison May "
    "Mercedes Paris Penny Rebecca Rose Ruby Savannah Sofia Sydney Tiffany Victoria Virginia",
    *"Agnieszka Agnes Aisha Alma Amina Anna Astrid Ayşe Beatriz Birgit Bronwen Bridget Camille "
    "Carmen Chiara Cosima Daniela Dagmar Deepa Dorothea Edith Eilidh Elena Esther Eszter Fatima "
    "Fiona Frieda Gabriela Gudrun Greta Gwen Hannah Hanako Heidi Helga Hélène Ida Ines Ingrid "
    "Irena Isabel Isolde Joanna Johanna Josefina Judith Katarína Kirsten Klara Laila Leonie Linnéa "
    "Lotte Lucia Ludmila Magdalena Maeve Margit Marta Matilda Mei Milena Mireille Nadia Naomi "
    "Natalia Niamh Noor Olga Ottilie Paola Petra Philippa Priya Ragnhild Renée Rosalind Ruth "
    "Sanna Saoirse Shirin Sigrid Siân Sunita Susanna Svetlana Tamara Tatjana Thea Theodora "
    "Ursula Valentina Vera Wanda Wilhelmina Winifred Xenia Yasmin Yuki Yvonne Zainab Zofia "
    "Zuzana".split(),
    *_joined(
        "Anna Clara Dora Ella Flora Lina Mari Rosa Thea", "belle gunde linde lotte mina phine"
    ),
)

MALE = _pool(
    "Austin Bill Chad Chase Chester Dallas Dean Devon Drew Frank Grant Israel Jack Jordan Kent "
    "Lincoln Luke Mark Milan Miles Orlando Preston Santiago Troy Will",
    *"Aamir Adam Albert Aleksander Andrés Antonio Anton Arjun Arvid Barnabas Bartosz Björn Boris "
    "Brendan Bruno Caspar Cedric Claude Cormac Cyril Dafydd Diego Dmitri Dominik Eamon Edmund "
    "Eduardo Emil Enrique Enzo Ernest Fabio Felix Fergus François Fyodor Gareth Gerhard Giorgio "
    "Goran Gunnar Gustav Hamish Hans Haruki Henrik Horace Hugo Igor Ikram Isaac Ivan Ján Jakob "
    "Jérôme Joaquín Jorge Kasimir Kenji Klaus Knut Lars László Leon Lorenzo Ludwig Łukasz Magnus "
    "Malcolm Marek Matteo Mehmet Mikhail Mirosław Nikolai Niall Nils Oleg Omar Oskar Otto Pablo "
    "Pascal Pavel Pedro Percival Pierre Piotr Quentin Rafael Ravi Rhys Roderick Rupert Samir "
    "Sebastian Sergei Seán Søren Stefan Sven Tadeusz Takeshi Tariq Thaddeus Théo Tobias Ulrich "
    "Umberto Vikram Viktor Vladimir Wolfgang Xavier Yusuf Yannick Zoltán Zdeněk".split(),
    *_joined("Adal Bern Diet Ger Giesel Heri Lud Mein Rein Sieg", "bert fried hard helm mar win"),
)

SURNAME = _pool(
    "Baker Berlin Blackburn Bolton Bosch Bradford Brown Burnley Bush Carter Chester Cleveland "
    "Columbus Cook Darwin Dell Derby Disney Everton Ferrari Ford Green Hamilton Heinz Hilton "
    "Holland Houston Jackson Jordan King Lancaster Lincoln London Mars Morgan Nelson Page Porsche "
    "Preston Price Stone Tesla Turner Washington Wellington Wells York Young",
    *_VILLAGES[::4],
    *_INVENTED[::3],
    *_joined(
        "Adam Borow Czarn Dąbrow Jabłoń Kowal Lewandow Malin Nowak Sadow Wiśniew Zieliń",
        "ski czyk owicz",
    ),
    *_joined("Berg Dahl Eke Ek Hag Lind Lund Nord Sjö Strand Söder Wahl", "gren man qvist ström"),
    *_joined("Bogdan Fedor Ivan Karpin Lebed Orlov Petr Smirn Volk Yermol", "enko ev ov"),
    *_joined("Alvar Dominh Fernánd Gonzál Jimén Marqu Rodrígu Sánch Velásqu", "es ez"),
    *_joined("Bau Fleisch Hoff Kauf Müll Schäf Schneid Wagn Zimmer", "er mann meister"),
    *"de_Souza da_Silva van_Dijk van_der_Meer von_Trapp de_la_Cruz de_Vries di_Stefano du_Maurier "
    "O'Neill O'Hara O'Rourke McAllister McKenzie McTavish FitzGerald Åkesson Ångström Bartók "
    "Bianchi Chaudhuri Çelik Dvořák Esposito Fujimoto Ghosh Hrabal Işık Jayawardene Krzyżewski "
    "Lévy Moreau Nakamura Nguyễn Nørgaard Okafor Papadopoulos Quiñones Rasmussen Şahin Tanaka "
    "Ueda Villeneuve Wójcik Xu Yıldız Zhang Smith-Jones Knox-Browne Pym-Hargreaves "
    "García-Márquez".split(),
)

CITY = _pool(
    "Adelaide Austin Bath Berlin Blackburn Bolton Bradford Burnley Casablanca Charlotte Chelsea "
    "Chester Chicago Cleveland Columbus Dallas Darwin Derby Florence Hamilton Houston Lancaster "
    "Leeds Lincoln London Madison Milan Mobile Nelson Nice Orlando Paris Phoenix Preston Reading "
    "Santiago Savannah Sofia Sydney Troy Valencia Victoria Washington Wellington Wells York",
    *_VILLAGES[::2],
    *_INVENTED[::2],
    *"Aachen Almería Antwerp Århus Asunción Baku Bergamo Białystok Bilbao Bogotá Bolzano Brasília "
    "Bratislava Brno Bydgoszcz Cádiz Coimbra Córdoba Curitiba Dakar Debrecen Dijon Dubrovnik "
    "Düsseldorf Gdańsk Genoa Ghent Göteborg Graz Győr Hanoi Helsinki Innsbruck Izmir Jönköping "
    "Jyväskylä Kampala Katowice Kaunas Kyoto Kraków La_Paz Lagos Lausanne León Liège Lima "
    "Ljubljana Łódź Luanda Luleå Malmö Manila Maputo Montréal Mumbai München Nagoya Nairobi Náchod "
    "Odense Osaka Ostrava Oulu Palermo Pécs Plzeň Poznań Quito Riga Reykjavík Salzburg São_Paulo "
    "Sarajevo Seoul Split Szeged Tallinn Tampere Tirana Toruń Tromsø Turku Ulm Umeå Uppsala "
    "Utrecht Vilnius Würzburg Wrocław Yaoundé Zagreb Zürich".split(),
)

# Of places with a name of two words, the first word.
TWO_WORD_PLACE = _pool(
    "Green Mountain Palm Rose",
    *"Alder Badger Beaver Buffalo Cedar Chestnut Copper Coyote Cypress Eagle Elk Falcon Granite "
    "Heron Hickory Iron Juniper Maple Marble Moose Otter Pelican Pine Poplar Salmon Sandy Spruce "
    "Sycamore Timber Walnut".split(),
)

# Countries go with their adjectives. The unseen adjectives show by their endings what they are.
_COUNTRIES = Pool(
    *(
        tuple(pairs.split())
        for pairs in (
            "Chad:Chadian China:Chinese France:French Georgia:Georgian Greece:Greek "
            "Holland:Dutch Israel:Israeli Jordan:Jordanian Poland:Polish Turkey:Turkish",
            "Angola:Angolan Argentina:Argentine Austria:Austrian Belarus:Belarusian "
            "Belgium:Belgian Bhutan:Bhutanese Bolivia:Bolivian Brazil:Brazilian "
            "Bulgaria:Bulgarian Cambodia:Cambodian Canada:Canadian Colombia:Colombian "
            "Congo:Congolese Croatia:Croatian Cuba:Cuban Cyprus:Cypriot Denmark:Danish "
            "Egypt:Egyptian Eritrea:Eritrean Estonia:Estonian Ethiopia:Ethiopian Germany:German "
            "Ghana:Ghanaian Guatemala:Guatemalan Guyana:Guyanese Haiti:Haitian "
            "Honduras:Honduran Hungary:Hungarian Iceland:Icelandic Iran:Iranian Iraq:Iraqi "
            "Italy:Italian Jamaica:Jamaican Japan:Japanese Kenya:Kenyan Kuwait:Kuwaiti "
            "Laos:Laotian Liberia:Liberian Libya:Libyan Mali:Malian Malta:Maltese "
            "Mexico:Mexican Nepal:Nepalese Norway:Norwegian Oman:Omani Pakistan:Pakistani "
            "Panama:Panamanian Paraguay:Paraguayan Portugal:Portuguese Qatar:Qatari "
            "Romania:Romanian Russia:Russian Rwanda:Rwandan Scotland:Scottish Serbia:Serbian "
            "Singapore:Singaporean Slovakia:Slovak Somalia:Somali Spain:Spanish "
            "Switzerland:Swiss Syria:Syrian Thailand:Thai Togo:Togolese Tunisia:Tunisian "
            "Ukraine:Ukrainian Wales:Welsh Yemen:Yemeni Zimbabwe:Zimbabwean",
            "Albania:Albanian Algeria:Algerian Armenia:Armenian Australia:Australian "
            "Cameroon:Cameroonian Chile:Chilean Ecuador:Ecuadorian Finland:Finnish "
            "Gabon:Gabonese India:Indian Indonesia:Indonesian Ireland:Irish Latvia:Latvian "
            "Lebanon:Lebanese Lithuania:Lithuanian Malaysia:Malaysian Mongolia:Mongolian "
            "Morocco:Moroccan Namibia:Namibian Nigeria:Nigerian Peru:Peruvian "
            "Senegal:Senegalese Slovenia:Slovenian Sudan:Sudanese Sweden:Swedish "
            "Tanzania:Tanzanian Uganda:Ugandan Uruguay:Uruguayan Venezuela:Venezuelan "
            "Vietnam:Vietnamese Zambia:Zambian",
        )
    )
)
COUNTRY = Pool(*(tuple(pair.split(":")[0] for pair in pairs) for pairs in _COUNTRIES))
NATIONALITY = Pool(*(tuple(pair.split(":")[1] for pair in pairs) for pairs in _COUNTRIES))
# "Chinese" is as many as you like, but "Georgian" is one.
PEOPLE = Pool(
    *(tuple(f"{name}s" for name in names if name.endswith("an")) for names in NATIONALITY)
)

RIVER = _pool(
    "Amazon Congo Jordan Orange",
    *"Danube Dnieper Douro Drava Ebro Elbe Euphrates Ganges Guadiana Indus Irrawaddy Limpopo Loire "
    "Mekong Meuse Moselle Neckar Neva Niger Nile Oder Orinoco Paraná Rhine Rhône Sava Seine Tagus "
    "Tiber Tigris Vistula Vltava Volga Yangtze Yenisei Zambezi".split(),
)

CLUB = _pool(
    "Blackburn Bolton Bradford Burnley Chelsea Chester Cleveland Dallas Derby Everton Houston "
    "Leeds Lincoln Milan Orlando Paris Phoenix Preston Reading Valencia Washington York",
    *_VILLAGES[::2],
    *_INVENTED[::2],
)

COMPANY = _pool(
    "Amazon Apple Boeing Bosch Dell Disney Ferrari Ford Gap Google Heinz Hilton Mars Mercedes "
    "Morgan Nokia Orange Porsche Shell Siemens Target Tesla Tiffany",
    *_VILLAGES[::3],
    *_INVENTED[::4],
    *_joined(
        "Alti Cora Delphi Ever Fin Hydro Indi Key Luma Micro Nova Omni Pharma Quanti Rapi Sola "
        "Tele Uni Veri Zen",
        "core dyne gen lux nex soft tel trix via",
    ),
)

AGENCY = _pool(
    "European_Union IMF Red_Cross Salvation_Army UN United_Nations WHO World_Bank",
    *_joined("AF BEN COM EUR FED IN NOR OR PAN UN", "AC EP IC OSA TAG UCO"),
)

# Works with the name of a place or of a person, and the last word of invented ones.
WORK = _pool(
    "Casablanca Chicago Dracula Emma Hamlet Lincoln Orlando Rebecca Troy Victoria",
    *_VILLAGES[::5],
)
HEROINE = _pool(
    "Baker King Page Rose",
    *"Accordion Admiral Almond Apothecary Barometer Bicycle Butterfly Cabbage Cathedral Clarinet "
    "Cuckoo Donkey Elephant Ferryman Gardener Goldfish Governess Harpsichord Hedgehog "
    "Herring Horseman Kettle Lighthouse Locksmith Magpie Milkman Nightingale Nutcracker Oyster "
    "Piano Postman Pudding Sailor Samovar Seamstress Snowman Sparrow Stranger Teapot Tailor "
    "Trombone Umbrella Viscount Walrus Widow Windmill Zeppelin".split(),
)
