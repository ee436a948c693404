// The demo corpus's word tables as plain data, one row a word. To add a word, add a row: the grammar needs no change. Words are told apart
// by their addresses, so there is one copy of each table.
#pragma once

#include "demo/lexicon.h"

namespace starling::demo {

inline constexpr Gender M = Gender::masculine, F = Gender::feminine, N = Gender::neuter;

inline constexpr Noun kNouns[] = {
    // People
    {"mother", "mothers", "Mutter", "Mütter", F, kin | only_one},
    {"father", "fathers", "Vater", "Väter", M, kin | only_one},
    {"brother", "brothers", "Bruder", "Brüder", M, kin},
    {"sister", "sisters", "Schwester", "Schwestern", F, kin},
    {"aunt", "aunts", "Tante", "Tanten", F, kin},
    {"uncle", "uncles", "Onkel", "Onkel", M, kin},
    {"grandmother", "grandmothers", "Großmutter", "Großmütter", F, kin},
    {"grandfather", "grandfathers", "Großvater", "Großväter", M, kin},
    {"son", "sons", "Sohn", "Söhne", M, kin},
    {"daughter", "daughters", "Tochter", "Töchter", F, kin},
    {"friend", "friends", "Freund", "Freunde", M, person | own},
    {"child", "children", "Kind", "Kinder", N, person | own},
    {"man", "men", "Mann", "Männer", M, person},
    {"woman", "women", "Frau", "Frauen", F, person},
    {"boy", "boys", "Junge", "Jungen", M, person, "Jungen"},
    {"girl", "girls", "Mädchen", "Mädchen", N, person},
    {"neighbour", "neighbours", "Nachbar", "Nachbarn", M, person | own, "Nachbarn"},
    {"colleague", "colleagues", "Kollege", "Kollegen", M, person | own, "Kollegen"},
    {"teacher", "teachers", "Lehrer", "Lehrer", M, person | own},
    {"student", "students", "Student", "Studenten", M, person | own, "Studenten"},
    {"doctor", "doctors", "Arzt", "Ärzte", M, person | own},
    {"customer", "customers", "Kunde", "Kunden", M, person | own, "Kunden"},
    {"guest", "guests", "Gast", "Gäste", M, person | own},
    {"boss", "bosses", "Chef", "Chefs", M, person | own},
    {"tourist", "tourists", "Tourist", "Touristen", M, person, "Touristen"},
    {"waiter", "waiters", "Kellner", "Kellner", M, person},
    // Animals
    {"dog", "dogs", "Hund", "Hunde", M, animal},
    {"cat", "cats", "Katze", "Katzen", F, animal},
    {"bird", "birds", "Vogel", "Vögel", M, animal},
    {"horse", "horses", "Pferd", "Pferde", N, animal},
    // Things that are laid down
    {"book", "books", "Buch", "Bücher", N, lying | readable | writable | buyable | portable},
    {"newspaper", "newspapers", "Zeitung", "Zeitungen", F, lying | readable | buyable | portable},
    {"letter", "letters", "Brief", "Briefe", M, lying | readable | writable | openable | portable},
    {"key", "keys", "Schlüssel", "Schlüssel", M, lying | portable},
    {"knife", "knives", "Messer", "Messer", N, lying | washable | buyable},
    {"ticket", "tickets", "Fahrkarte", "Fahrkarten", F, lying | buyable | portable},
    {"pencil", "pencils", "Bleistift", "Bleistifte", M, lying | buyable | portable},
    {"present", "presents", "Geschenk", "Geschenke", N, lying | openable | buyable | portable},
    {"photo", "photos", "Foto", "Fotos", N, lying | portable},
    {"umbrella", "umbrellas", "Regenschirm", "Regenschirme", M, lying | buyable | portable},
    {"spoon", "spoons", "Löffel", "Löffel", M, lying | washable | buyable},
    {"camera", "cameras", "Kamera", "Kameras", F, lying | repairable | buyable | portable},
    {"shirt", "shirts", "Hemd", "Hemden", N, lying | clothing | washable | buyable},
    {"jacket", "jackets", "Jacke", "Jacken", F, lying | clothing | washable | buyable},
    {"dress", "dresses", "Kleid", "Kleider", N, lying | clothing | washable | buyable},
    {"coat", "coats", "Mantel", "Mäntel", M, lying | clothing | washable | buyable},
    {"hat", "hats", "Hut", "Hüte", M, lying | clothing | buyable},
    {"skirt", "skirts", "Rock", "Röcke", M, lying | clothing | washable | buyable},
    // Things that are stood up
    {"bottle", "bottles", "Flasche", "Flaschen", F, standing | openable | portable},
    {"cup", "cups", "Tasse", "Tassen", F, standing | washable | buyable},
    {"glass", "glasses", "Glas", "Gläser", N, standing | washable | buyable},
    {"plate", "plates", "Teller", "Teller", M, standing | washable | buyable},
    {"lamp", "lamps", "Lampe", "Lampen", F, standing | device | repairable | buyable},
    {"vase", "vases", "Vase", "Vasen", F, standing | washable | buyable},
    {"suitcase", "suitcases", "Koffer", "Koffer", M, standing | container | openable | buyable | portable},
    {"chair", "chairs", "Stuhl", "Stühle", M, standing | surface | repairable | buyable},
    // Furniture and large things
    {"table", "tables", "Tisch", "Tische", M, surface | buyable | large},
    {"bed", "beds", "Bett", "Betten", N, surface | buyable | large},
    {"sofa", "sofas", "Sofa", "Sofas", N, surface | buyable | large},
    {"shelf", "shelves", "Regal", "Regale", N, surface | repairable | buyable | large},
    {"cupboard", "cupboards", "Schrank", "Schränke", M, container | openable | buyable | large},
    {"bag", "bags", "Tasche", "Taschen", F, container | openable | buyable | portable},
    {"door", "doors", "Tür", "Türen", F, openable | large},
    {"window", "windows", "Fenster", "Fenster", N, openable | washable | large},
    {"car", "cars", "Auto", "Autos", N, washable | repairable | buyable | large},
    {"bicycle", "bicycles", "Fahrrad", "Fahrräder", N, washable | repairable | buyable | large},
    {"house", "houses", "Haus", "Häuser", N, buyable | large},
    {"flat", "flats", "Wohnung", "Wohnungen", F, buyable | large},
    {"computer", "computers", "Computer", "Computer", M, device | repairable | buyable},
    {"television", "televisions", "Fernseher", "Fernseher", M, device | repairable | buyable},
    {"radio", "radios", "Radio", "Radios", N, device | repairable | buyable},
    {"watch", "watches", "Uhr", "Uhren", F, lying | repairable | buyable | portable},
    {"picture", "pictures", "Bild", "Bilder", N, buyable | portable},
    // Food
    {"apple", "apples", "Apfel", "Äpfel", M, food},
    {"egg", "eggs", "Ei", "Eier", N, food},
    {"roll", "rolls", "Brötchen", "Brötchen", N, food},
    {"cake", "cakes", "Kuchen", "Kuchen", M, food},
    {"salad", "salads", "Salat", "Salate", M, food},
    {"soup", "soups", "Suppe", "Suppen", F, food},
    {"sausage", "sausages", "Wurst", "Würste", F, food},
    {"pizza", "pizzas", "Pizza", "Pizzas", F, food},
    {"orange", "oranges", "Orange", "Orangen", F, food},
    {"banana", "bananas", "Banane", "Bananen", F, food},
    {"tomato", "tomatoes", "Tomate", "Tomaten", F, food},
    // Events
    {"concert", "concerts", "Konzert", "Konzerte", N, event},
    {"course", "courses", "Kurs", "Kurse", M, event},
    {"party", "parties", "Party", "Partys", F, event},
    {"exam", "exams", "Prüfung", "Prüfungen", F, event},
    {"meeting", "meetings", "Besprechung", "Besprechungen", F, event},
};

inline constexpr uint32_t kPeople = kin | person;
inline constexpr uint32_t kObjects = lying | standing | surface | container | device | clothing | large | portable;

inline constexpr Adjective kAdjectives[] = {
    {"old", "alt", "alt", "older", "älter", kPeople | animal | kObjects},
    {"young", "jung", "jung", "younger", "jünger", kPeople | animal},
    {"friendly", "freundlich", "freundlich", "friendlier", "freundlicher", kPeople},
    {"famous", "berühmt", "berühmt", "more famous", "berühmter", kPeople},
    {"polite", "höflich", "höflich", "more polite", "höflicher", kPeople},
    {"rich", "reich", "reich", "richer", "reicher", kPeople},
    {"happy", "glücklich", "glücklich", "happier", "glücklicher", kPeople},
    {"tired", "müde", "müd", nullptr, nullptr, kPeople | animal},
    {"ill", "krank", "krank", nullptr, nullptr, kPeople | animal},
    {"hungry", "hungrig", "hungrig", "hungrier", "hungriger", kPeople | animal},
    {"strong", "stark", "stark", "stronger", "stärker", kPeople | animal},
    {"big", "groß", "groß", "bigger", "größer", kObjects | animal | food},
    {"small", "klein", "klein", "smaller", "kleiner", kObjects | animal | food},
    {"new", "neu", "neu", "newer", "neuer", kObjects},
    {"beautiful", "schön", "schön", "more beautiful", "schöner", kObjects | animal},
    {"expensive", "teuer", "teur", "more expensive", "teurer", kObjects},
    {"cheap", "billig", "billig", "cheaper", "billiger", kObjects},
    {"heavy", "schwer", "schwer", "heavier", "schwerer", kObjects},
    {"clean", "sauber", "sauber", "cleaner", "sauberer", kObjects},
    {"dirty", "schmutzig", "schmutzig", "dirtier", "schmutziger", kObjects},
    {"modern", "modern", "modern", "more modern", "moderner", device | large},
    {"red", "rot", "rot", nullptr, nullptr, clothing | standing | container},
    {"blue", "blau", "blau", nullptr, nullptr, clothing | standing | container},
    {"green", "grün", "grün", nullptr, nullptr, clothing | standing | container},
    {"black", "schwarz", "schwarz", nullptr, nullptr, clothing | container | animal},
    {"white", "weiß", "weiß", nullptr, nullptr, clothing | standing | animal},
    {"fresh", "frisch", "frisch", "fresher", "frischer", food},
    {"good", "gut", "gut", "better", "besser", food},
    {"cold", "kalt", "kalt", "colder", "kälter", food},
    {"delicious", "köstlich", "köstlich", "more delicious", "köstlicher", food},
};

inline constexpr uint32_t kAny = kObjects | portable;
inline constexpr Verb kTransitive[] = {
    {"buy", "buys", "buying", "bought", "", "kaufe", "kauft", "kaufen", "", "gekauft", false, buyable | food},
    {"sell", "sells", "selling", "sold", "", "verkaufe", "verkauft", "verkaufen", "", "verkauft", false, buyable},
    {"look for", "looks for", "looking for", "looked for", "", "suche", "sucht", "suchen", "", "gesucht", false, kAny},
    {"find", "finds", "finding", "found", "", "finde", "findet", "finden", "", "gefunden", false, kAny, true},
    {"need", "needs", "needing", "needed", "", "brauche", "braucht", "brauchen", "", "gebraucht", false, kAny | food, true},
    {"see", "sees", "seeing", "saw", "", "sehe", "sieht", "sehen", "", "gesehen", false, kAny | animal | person, true},
    {"read", "reads", "reading", "read", "", "lese", "liest", "lesen", "", "gelesen", false, readable},
    {"write", "writes", "writing", "wrote", "", "schreibe", "schreibt", "schreiben", "", "geschrieben", false, writable},
    {"open", "opens", "opening", "opened", "", "öffne", "öffnet", "öffnen", "", "geöffnet", false, openable},
    {"wash", "washes", "washing", "washed", "", "wasche", "wäscht", "waschen", "", "gewaschen", false, washable},
    {"repair", "repairs", "repairing", "repaired", "", "repariere", "repariert", "reparieren", "", "repariert", false, repairable},
    {"forget", "forgets", "forgetting", "forgot", "", "vergesse", "vergisst", "vergessen", "", "vergessen", false, portable, true},
    {"lose", "loses", "losing", "lost", "", "verliere", "verliert", "verlieren", "", "verloren", false, portable, true},
    {"turn on", "turns on", "turning on", "turned on", "", "schalte", "schaltet", "schalten", "ein", "eingeschaltet", false, device},
    {"turn off", "turns off", "turning off", "turned off", "", "schalte", "schaltet", "schalten", "aus", "ausgeschaltet", false, device},
    {"put on", "puts on", "putting on", "put on", "", "ziehe", "zieht", "ziehen", "an", "angezogen", false, clothing},
    {"take off", "takes off", "taking off", "took off", "", "ziehe", "zieht", "ziehen", "aus", "ausgezogen", false, clothing},
    {"bring along", "brings along", "bringing along", "brought along", "", "bringe", "bringt", "bringen", "mit", "mitgebracht", false,
     portable | food},
    {"eat", "eats", "eating", "ate", "", "esse", "isst", "essen", "", "gegessen", false, food},
    {"order", "orders", "ordering", "ordered", "", "bestelle", "bestellt", "bestellen", "", "bestellt", false, food | buyable},
    {"try", "tries", "trying", "tried", "", "probiere", "probiert", "probieren", "", "probiert", false, food},
};

inline constexpr Verb kPerson[] = {
    {"call", "calls", "calling", "called", "", "rufe", "ruft", "rufen", "an", "angerufen", false, kPeople},
    {"visit", "visits", "visiting", "visited", "", "besuche", "besucht", "besuchen", "", "besucht", false, kPeople},
    {"invite", "invites", "inviting", "invited", "", "lade", "lädt", "laden", "ein", "eingeladen", false, kPeople},
    {"pick", "picks", "picking", "picked", "up", "hole", "holt", "holen", "ab", "abgeholt", false, kPeople},
    {"meet", "meets", "meeting", "met", "", "treffe", "trifft", "treffen", "", "getroffen", false, kPeople},
    {"ask", "asks", "asking", "asked", "", "frage", "fragt", "fragen", "", "gefragt", false, kPeople},
    {"understand", "understands", "", "understood", "", "verstehe", "versteht", "verstehen", "", "verstanden", false, kPeople, true},
};

inline constexpr Verb kDative[] = {
    {"help", "helps", "helping", "helped", "", "helfe", "hilft", "helfen", "", "geholfen", false, kPeople},
    {"thank", "thanks", "thanking", "thanked", "", "danke", "dankt", "danken", "", "gedankt", false, kPeople},
    {"answer", "answers", "answering", "answered", "", "antworte", "antwortet", "antworten", "", "geantwortet", false, kPeople},
    {"congratulate", "congratulates", "congratulating", "congratulated", "", "gratuliere", "gratuliert", "gratulieren", "", "gratuliert",
     false, kPeople},
    {"listen to", "listens to", "listening to", "listened to", "", "höre", "hört", "hören", "zu", "zugehört", false, kPeople},
};

inline constexpr Verb kGiving[] = {
    {"give", "gives", "giving", "gave", "", "gebe", "gibt", "geben", "", "gegeben", false, portable},
    {"show", "shows", "showing", "showed", "", "zeige", "zeigt", "zeigen", "", "gezeigt", false, portable | large | clothing},
    {"send", "sends", "sending", "sent", "", "schicke", "schickt", "schicken", "", "geschickt", false, portable},
    {"bring", "brings", "bringing", "brought", "", "bringe", "bringt", "bringen", "", "gebracht", false, portable | food},
    {"lend", "lends", "lending", "lent", "", "leihe", "leiht", "leihen", "", "geliehen", false, portable | clothing},
};

inline constexpr Verb kIntransitive[] = {
    {"work", "works", "working", "worked", "", "arbeite", "arbeitet", "arbeiten", "", "gearbeitet", false, 0},
    {"sleep", "sleeps", "sleeping", "slept", "", "schlafe", "schläft", "schlafen", "", "geschlafen", false, 0},
    {"sing", "sings", "singing", "sang", "", "singe", "singt", "singen", "", "gesungen", false, 0},
    {"dance", "dances", "dancing", "danced", "", "tanze", "tanzt", "tanzen", "", "getanzt", false, 0},
    {"cook", "cooks", "cooking", "cooked", "", "koche", "kocht", "kochen", "", "gekocht", false, 0},
    {"swim", "swims", "swimming", "swam", "", "schwimme", "schwimmt", "schwimmen", "", "geschwommen", true, 0},
    {"play", "plays", "playing", "played", "", "spiele", "spielt", "spielen", "", "gespielt", false, 0},
    {"get up", "gets up", "getting up", "got up", "", "stehe", "steht", "stehen", "auf", "aufgestanden", true, 0},
    {"fall asleep", "falls asleep", "falling asleep", "fell asleep", "", "schlafe", "schläft", "schlafen", "ein", "eingeschlafen", true, 0},
    {"go shopping", "goes shopping", "going shopping", "went shopping", "", "kaufe", "kauft", "kaufen", "ein", "eingekauft", false, 0},
    {"go out", "goes out", "going out", "went out", "", "gehe", "geht", "gehen", "aus", "ausgegangen", true, 0},
    {"watch television", "watches television", "watching television", "watched television", "", "sehe", "sieht", "sehen", "fern",
     "ferngesehen", false, 0},
    {"come back", "comes back", "coming back", "came back", "", "komme", "kommt", "kommen", "zurück", "zurückgekommen", true, 0},
    {"tidy up", "tidies up", "tidying up", "tidied up", "", "räume", "räumt", "räumen", "auf", "aufgeräumt", false, 0},
};

inline constexpr Verb kCity[] = {
    {"travel", "travels", "travelling", "travelled", "", "reise", "reist", "reisen", "", "gereist", true, 0},
    {"drive", "drives", "driving", "drove", "", "fahre", "fährt", "fahren", "", "gefahren", true, 0},
    {"fly", "flies", "flying", "flew", "", "fliege", "fliegt", "fliegen", "", "geflogen", true, 0},
};

inline constexpr Verb kMovement[] = {
    {"go", "goes", "going", "went", "", "gehe", "geht", "gehen", "", "gegangen", true, 0},
    {"drive", "drives", "driving", "drove", "", "fahre", "fährt", "fahren", "", "gefahren", true, 0},
    {"run", "runs", "running", "ran", "", "laufe", "läuft", "laufen", "", "gelaufen", true, 0},
    {"come", "comes", "coming", "came", "", "komme", "kommt", "kommen", "", "gekommen", true, 0},
};

inline constexpr Verb kStaying[] = {
    {"work", "works", "working", "worked", "", "arbeite", "arbeitet", "arbeiten", "", "gearbeitet", false, 0},
    {"wait", "waits", "waiting", "waited", "", "warte", "wartet", "warten", "", "gewartet", false, 0},
    {"stay", "stays", "staying", "stayed", "", "bleibe", "bleibt", "bleiben", "", "geblieben", true, 0},
    {"live", "lives", "living", "lived", "", "wohne", "wohnt", "wohnen", "", "gewohnt", false, 0, true},
};

inline constexpr Verb kSaying[] = {
    {"know", "knows", "", "knew", "", "weiß", "weiß", "wissen", "", "gewusst", false, 0, true},
    {"think", "thinks", "", "thought", "", "denke", "denkt", "denken", "", "gedacht", false, 0, true},
    {"hope", "hopes", "", "hoped", "", "hoffe", "hofft", "hoffen", "", "gehofft", false, 0, true},
    {"say", "says", "", "said", "", "sage", "sagt", "sagen", "", "gesagt", false, 0, true},
};
inline constexpr const Verb& kKnow = kSaying[0];

inline constexpr Verb kWeather[] = {
    {"rain", "rains", "raining", "rained", "", "regne", "regnet", "regnen", "", "geregnet", false, 0},
    {"snow", "snows", "snowing", "snowed", "", "schneie", "schneit", "schneien", "", "geschneit", false, 0},
};

inline constexpr Verb kBe{"be", "is", "being", "was", "", "bin", "ist", "sein", "", "gewesen", true, 0, true};
inline constexpr Verb kPutLying{"put", "puts", "putting", "put", "", "lege", "legt", "legen", "", "gelegt", false, lying};
inline constexpr Verb kPutStanding{"put", "puts", "putting", "put", "", "stelle", "stellt", "stellen", "", "gestellt", false, standing};
inline constexpr Verb kLie{"lie", "lies", "lying", "lay", "", "liege", "liegt", "liegen", "", "gelegen", false, 0};
inline constexpr Verb kStand{"stand", "stands", "standing", "stood", "", "stehe", "steht", "stehen", "", "gestanden", false, 0};
inline constexpr Verb kDepart{"depart", "departs", "departing", "departed", "", "fahre", "fährt", "fahren", "ab", "abgefahren", true, 0};
inline constexpr Verb kArrive{"arrive", "arrives", "arriving", "arrived", "", "komme", "kommt", "kommen", "an", "angekommen", true, 0};
inline constexpr Verb kTakePlace{"take place", "takes place", "taking place", "took place",    "",    "finde",
                                 "findet",     "finden",      "statt",        "stattgefunden", false, 0};
inline constexpr Verb kBelong{"belong to", "belongs to", "",       "belonged to", "", "gehöre", "gehört",
                              "gehören",   "",           "gehört", false,         0,  true};
inline constexpr Verb kHave{"have", "has", "having", "had", "", "habe", "hat", "haben", "", "gehabt", false, 0, true};

inline constexpr Modal kModals[] = {
    {"can", "can", "kann", "kann", "können", "cannot", false},
    {"have to", "has to", "muss", "muss", "müssen", "", true},
    {"must", "must", "muss", "muss", "müssen", nullptr, false},
    {"want to", "wants to", "will", "will", "wollen", "", true},
    {"should", "should", "sollte", "sollte", "sollten", "should not", false},
    {"may", "may", "darf", "darf", "dürfen", "may not", false},
    {"would like to", "would like to", "möchte", "möchte", "möchten", nullptr, false},
};

inline constexpr Place kPlaces[] = {
    {"at the station", "to the station", "am Bahnhof", "zum Bahnhof"},
    {"at the airport", "to the airport", "am Flughafen", "zum Flughafen"},
    {"in the park", "to the park", "im Park", "in den Park"},
    {"at the cinema", "to the cinema", "im Kino", "ins Kino"},
    {"in the city", "to the city", "in der Stadt", "in die Stadt"},
    {"at the supermarket", "to the supermarket", "im Supermarkt", "in den Supermarkt"},
    {"in the office", "to the office", "im Büro", "ins Büro"},
    {"at the university", "to the university", "an der Universität", "zur Universität"},
    {"in the restaurant", "to the restaurant", "im Restaurant", "ins Restaurant"},
    {"at the market", "to the market", "auf dem Markt", "auf den Markt"},
    {"in the hospital", "to the hospital", "im Krankenhaus", "ins Krankenhaus"},
    {"in the library", "to the library", "in der Bibliothek", "in die Bibliothek"},
    {"at the museum", "to the museum", "im Museum", "ins Museum"},
    {"at the theatre", "to the theatre", "im Theater", "ins Theater"},
    {"on the beach", "to the beach", "am Strand", "an den Strand"},
    {"in the kitchen", "to the kitchen", "in der Küche", "in die Küche"},
    {"in the garden", "to the garden", "im Garten", "in den Garten"},
    {"in the hotel", "to the hotel", "im Hotel", "ins Hotel"},
    {"at home", "home", "zu Hause", "nach Hause"},
};

inline constexpr Fixed kCities[] = {{"Berlin", "Berlin"}, {"Hamburg", "Hamburg"}, {"Munich", "München"},  {"Cologne", "Köln"},
                                    {"Vienna", "Wien"},   {"Zurich", "Zürich"},   {"Dresden", "Dresden"}, {"Leipzig", "Leipzig"}};
inline constexpr Fixed kNames[] = {{"Anna", "Anna"}, {"Peter", "Peter"}, {"Maria", "Maria"},
                                   {"Paul", "Paul"}, {"Julia", "Julia"}, {"Thomas", "Thomas"}};

inline constexpr Noun kLandmarks[] = {
    {"traffic light", "", "Ampel", "", F, 0}, {"crossroads", "", "Kreuzung", "", F, 0}, {"bridge", "", "Brücke", "", F, 0},
    {"church", "", "Kirche", "", F, 0},       {"tower", "", "Turm", "", M, 0},          {"fountain", "", "Brunnen", "", M, 0},
    {"town hall", "", "Rathaus", "", N, 0},   {"bank", "", "Bank", "", F, 0},           {"school", "", "Schule", "", F, 0},
    {"castle", "", "Schloss", "", N, 0},
};
inline constexpr Noun kVehicles[] = {{"train", "trains", "Zug", "Züge", M, 0},
                                     {"bus", "buses", "Bus", "Busse", M, 0},
                                     {"ship", "ships", "Schiff", "Schiffe", N, 0},
                                     {"tram", "trams", "Straßenbahn", "Straßenbahnen", F, 0}};

inline constexpr Drink kDrinks[] = {{"coffee", "Kaffee", true, false, false},    {"tea", "Tee", true, true, false},
                                    {"milk", "Milch", true, true, true},         {"water", "Wasser", false, true, true},
                                    {"wine", "Wein", false, true, true},         {"beer", "Bier", false, true, true},
                                    {"lemonade", "Limonade", false, true, true}, {"juice", "Saft", false, true, true}};
inline constexpr Fixed kSubstances[] = {{"bread", "Brot"}, {"cheese", "Käse"}, {"butter", "Butter"}, {"rice", "Reis"}, {"honey", "Honig"}};

inline constexpr Fixed kWeatherWords[] = {{"cold", "kalt"},    {"warm", "warm"},       {"hot", "heiß"},     {"sunny", "sonnig"},
                                          {"windy", "windig"}, {"cloudy", "bewölkt"},  {"foggy", "neblig"}, {"wet", "nass"},
                                          {"cool", "kühl"},    {"stormy", "stürmisch"}};
inline constexpr Fixed kRegions[] = {{"in the north", "im Norden"},         {"in the south", "im Süden"},
                                     {"in the east", "im Osten"},           {"in the west", "im Westen"},
                                     {"in the mountains", "in den Bergen"}, {"on the coast", "an der Küste"}};
inline constexpr Fixed kTransport[] = {{"by train", "mit dem Zug"}, {"by car", "mit dem Auto"}, {"by bus", "mit dem Bus"}};

inline constexpr Fixed kPast[] = {{"yesterday", "gestern"},
                                  {"last week", "letzte Woche"},
                                  {"last month", "letzten Monat"},
                                  {"last year", "letztes Jahr"},
                                  {"yesterday evening", "gestern Abend"},
                                  {"yesterday morning", "gestern Morgen"},
                                  {"last weekend", "letztes Wochenende"}};
inline constexpr Fixed kFutureDays[] = {{"today", "heute"}, {"tomorrow", "morgen"}, {"the day after tomorrow", "übermorgen"}};
inline constexpr Fixed kFuture[] = {{"this evening", "heute Abend"}, {"tomorrow evening", "morgen Abend"},
                                    {"next week", "nächste Woche"},  {"next month", "nächsten Monat"},
                                    {"next year", "nächstes Jahr"},  {"at the weekend", "am Wochenende"}};
inline constexpr Fixed kHabitual[] = {{"every day", "jeden Tag"},   {"every morning", "jeden Morgen"}, {"every evening", "jeden Abend"},
                                      {"every week", "jede Woche"}, {"in the morning", "am Morgen"},   {"in the evening", "am Abend"},
                                      {"in summer", "im Sommer"},   {"in winter", "im Winter"},        {"at the weekend", "am Wochenende"}};
inline constexpr Fixed kPresent[] = {{"now", "jetzt"}, {"at the moment", "im Moment"}, {"today", "heute"}};
inline constexpr Fixed kFrequencies[] = {{"always", "immer"}, {"often", "oft"},        {"sometimes", "manchmal"},
                                         {"never", "nie"},    {"usually", "meistens"}, {"rarely", "selten"}};
inline constexpr Fixed kMonths[] = {{"January", "Januar"},  {"February", "Februar"},  {"March", "März"},
                                    {"April", "April"},     {"May", "Mai"},           {"June", "Juni"},
                                    {"July", "Juli"},       {"August", "August"},     {"September", "September"},
                                    {"October", "Oktober"}, {"November", "November"}, {"December", "Dezember"}};
inline constexpr Fixed kWeekdays[] = {{"Monday", "Montag"},  {"Tuesday", "Dienstag"}, {"Wednesday", "Mittwoch"}, {"Thursday", "Donnerstag"},
                                      {"Friday", "Freitag"}, {"Saturday", "Samstag"}, {"Sunday", "Sonntag"}};

}  // namespace starling::demo
