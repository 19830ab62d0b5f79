"""English verbs whose past the stemmer does not bring back to the verb: each line a verb, and its other forms.

Forms that are words of their own are left out: left, found, saw, lay, bore, ground, wound, bound.
"""

IRREGULAR_VERBS = """
arise arose arisen
awake awoke awoken
beat beaten
become became
begin began begun
bend bent
bite bitten
bleed bled
blow blew blown
break broke broken
breed bred
bring brought
build built
burn burnt
buy bought
catch caught
choose chose chosen
come came
creep crept
deal dealt
dig dug
draw drew drawn
dream dreamt
drink drank drunk
drive drove driven
eat ate eaten
fall fell fallen
feed fed
feel felt
fight fought
flee fled
fly flew flown
forbid forbade forbidden
forget forgot forgotten
forgive forgave forgiven
freeze froze frozen
give gave given
go goes went gone
grow grew grown
hang hung
have has had
hear heard
hide hid hidden
hold held
keep kept
know knew known
lead led
learn learnt
lend lent
lose lost
make made makes making
mean meant
meet met
overcome overcame
overtake overtook overtaken
overthrow overthrew overthrown
pay paid
ride rode ridden
ring rang rung
rise rose risen
run ran
say said
seek sought
sell sold
send sent
shake shook shaken
shine shone
show shown
shrink shrank shrunk
sing sang sung
sink sank sunk
sit sat
sleep slept
slide slid
speak spoke spoken
spend spent
spill spilt
spin spun
spoil spoilt
stand stood
steal stole stolen
stick stuck
strike struck stricken
swear swore sworn
sweep swept
swim swam swum
swing swung
take took taken takes taking
teach taught
tear torn
tell told
think thought
throw threw thrown
undergo underwent undergone
understand understood
undertake undertook undertaken
undo undid undone
use used uses using
wake woke woken
wear wore worn
weave wove woven
weep wept
win won
withdraw withdrew withdrawn
write wrote written
"""
