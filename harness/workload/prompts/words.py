"""Vocabulary of generated prompts: everyday words that are single tokens for most tokenizers."""

ADJECTIVES = (
    "able bad basic big black blue brief bright broad busy calm cheap clean clear close cold common cool "
    "correct current dark deep direct dry early easy empty even exact fair fast final fine firm first flat "
    "fresh full general good great green hard heavy high hot huge human large last late light likely local "
    "long loud low main major modern narrow natural new nice old open plain poor public quick quiet rare "
    "ready real recent red rich right round safe second sharp short simple single slow small smart soft "
    "solid special steady strong sure tall thick thin third tiny total true usual warm weak white whole "
    "wide wild wise young"
).split()

NOUNS = (
    "account action address agent air animal answer area army art article author baby bank base battle bird "
    "board boat body book box boy bridge brother building business camera camp captain car card case cell "
    "center chair chance change chapter child church circle city class club coast code college color company "
    "computer corner country county course court cousin crew crowd cup date daughter day deal design desk "
    "doctor dog door dream driver edge effort energy engine error evening event example eye face factor "
    "family farm father field film fire fish floor food force forest form friend future game garden glass "
    "goal government group guide hand heart hill history home horse hospital hotel hour house idea image "
    "island issue job journey judge key king kitchen lake land language law leader letter level library "
    "life line list machine manager map market master matter meeting member message method mind minute "
    "model moment money month morning mother mountain movie museum music name nation nature network news "
    "night north number office officer oil order page paper parent part party path people person phone "
    "photo picture piece place plan planet plant player point police power price prize problem process "
    "product program project queen question radio record region report result river road rock room rule "
    "school science screen season secret section series service ship shop signal sister site size skill "
    "sky song sound source south space speech sport square staff stage star state station stone store "
    "storm story street student study subject summer sun system table task teacher team term test theory "
    "thing title tool town trade train tree trial trip truth unit value video village voice wall war watch "
    "water way week wife wind window winter woman word work world writer year"
).split()

VERBS = (
    "accepts allows becomes brings builds calls carries changes checks closes contains controls covers "
    "crosses describes divides enters explains faces fills finds follows forms gets gives grows helps holds "
    "includes joins keeps knows leads learns leaves likes limits links lists lives loses makes marks meets "
    "misses moves needs notes offers opens passes pays plays points produces provides puts reaches reads "
    "receives records remains requires returns rules runs saves says sees sells sends serves sets shares "
    "shows starts stops studies supports takes teaches tells tests tries turns uses visits wants watches "
    "wins works writes"
).split()

PLACES = (
    "about above across after against along among around at before behind below beside between by for "
    "from in inside into near of on over past through to toward under until with without"
).split()

OPENERS = (
    "Again Always Because Before Today Here However If Instead It Later Maybe Now Often Once One "
    "Perhaps She Since Some Sometimes Soon Still That The Then There They We When Where While"
).split()
