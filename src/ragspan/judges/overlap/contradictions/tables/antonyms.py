"""Opposites in English.

Each word on the left of a colon is opposed to each on the right; their stems and synonyms are, too.
"""

ANTONYMS = """
rise increase : fall decrease
strengthen : weaken
expand : contract shrink
accelerate : decelerate slow
double triple : halve
improve : worsen deteriorate
better best : worse worst
gain : lose
profit surplus : loss deficit
profitable : unprofitable
maximize : minimize
maximum : minimum
upper : lower
highest : lowest
high : low
unlimited : limit
tall : short
long : short brief
lengthen prolong extend : shorten
enlarge : reduce
upgrade : downgrade
promote : demote
appreciate : depreciate devalue
inflate : deflate
boost : dampen
ascend climb : descend
upward uphill : downward downhill
uptrend : downtrend
overestimate : underestimate
exceed : undershoot
oversupply : shortage scarcity
abundant plentiful : scarce
abundance : scarcity shortage
sufficient adequate enough : insufficient inadequate
large big huge : small tiny little
larger bigger : smaller
largest biggest : smallest
wide broad : narrow
thick : thin
heavy : light
heavier : lighter
heaviest : lightest
deep : shallow
fast quick rapid : slow
faster quicker : slower
fastest : slowest
strong : weak
stronger : weaker
strongest : weakest
hot warm : cold cool
hotter warmer : colder cooler
hottest warmest : coldest coolest
heat : cool
freeze : melt thaw
solid : liquid
hard : soft
rough : smooth
sharp : blunt dull
bright : dark dim
loud noisy : quiet silent
full : empty low
fill : drain
wet : dry
humid moist : arid dry
dense : sparse
major : minor
majority : minority
simple easy : difficult complex hard
simplify : complicate
cheap inexpensive : expensive costly
cheaper : dearer pricier costlier expensive
cheapest : dearest
rich wealthy : poor
clean : dirty
pure : impure contaminated
fresh : stale
young : old elderly
younger : older
youngest : oldest
new modern : old ancient
newer : older
newest latest : oldest
early : late
earlier sooner : later
earliest : latest
first : last final
former previous : latter
past : future
temporary : permanent
brief : lengthy
frequent : rare infrequent
frequently often : rarely seldom
always : never sometimes
usually : rarely
common : rare uncommon
regular : irregular occasional
constant stable : variable unstable volatile
stability : instability volatility
fixed : variable flexible
rigid : flexible
tight : loose
tighten : loosen
near : far distant
nearest closest : farthest furthest
local domestic : foreign
national : international
internal : external
inner : outer
interior indoor : exterior outdoor
indoors : outdoors
front : rear back
top : bottom
horizontal : vertical
parallel : perpendicular
left : right
clockwise : anticlockwise counterclockwise
forward forwards : backward backwards
north northern : south southern
east eastern : west western
northeast : southwest
northwest : southeast
inland : coastal offshore
onshore : offshore
urban : rural
uphill : downhill
upstream : downstream
upstairs : downstairs
above : below beneath
over : under
inside : outside
before : after
prior : subsequent
predecessor : successor
ancestor : descendant
until : from
with : without
on : off
up : down
in : out
to : from
more : less fewer
most : least fewest
many : few
plus : minus
additional : fewer
open : close
opening : closing closure
start begin launch : end stop finish
beginning onset : end
initial : final
enable : disable
activate : deactivate
connect : disconnect
attach : detach
plug : unplug
lock : unlock
install : uninstall
load : unload
pack : unpack
fasten : unfasten
mount : dismount unmount
assemble : disassemble dismantle
subscribe : unsubscribe
encrypt : decrypt
compress : decompress
encode : decode
freeze : unfreeze
insert : remove eject
add : remove subtract delete
include : exclude omit
inclusive : exclusive
inclusion : exclusion
accept : reject refuse decline
acceptance : rejection refusal
approve : reject veto disapprove
approval : rejection disapproval
allow permit : forbid prohibit ban
allowed permitted : forbidden prohibited banned
legal lawful : illegal unlawful
legalize : outlaw ban
valid : invalid void
validate : invalidate
grant : deny refuse reject
confirm : deny refute
affirm uphold : overturn reverse
admit : deny
agree : disagree
agreement : disagreement
consent : refuse
support endorse : oppose
supporter proponent : opponent
opponent : ally
favor : oppose
favorable : unfavorable
praise : criticize condemn
recommend : discourage
encourage : discourage
advise : dissuade
advisable : inadvisable
suitable : unsuitable
appropriate : inappropriate
acquit exonerate : convict
acquittal : conviction
innocent : guilty
arrest detain : release
imprison jail : release free
plaintiff prosecution : defendant defense
convict : pardon
win : lose
winner : loser
victory triumph : defeat loss
victorious : defeated
succeed : fail
success : failure
successful : unsuccessful failed
pass : fail
attack : defend
offensive : defensive
invade : retreat
advance : retreat
conquer : surrender
war : peace
peaceful : violent
friend : enemy
love like : hate dislike
happy : sad unhappy
satisfied : dissatisfied
optimistic : pessimistic
optimism : pessimism
positive : negative
plus advantage benefit : disadvantage drawback
pro : con
beneficial : harmful detrimental
harmless : harmful
safe : dangerous unsafe hazardous
safety : danger
protect : endanger
toxic poisonous : nontoxic harmless
edible : inedible
healthy : sick ill unhealthy
cure heal : infect
painful : painless
benign : malignant
acute : chronic
mild : severe
symptomatic : asymptomatic
conscious : unconscious
alive : dead
live survive : die perish
survivor : victim
birth born : death died
arrive : depart leave
arrival : departure
enter : leave exit
entrance entry : exit
join : leave quit
come : go
stay remain : leave resign quit depart
appear : disappear vanish
visible : invisible hidden
show reveal : hide conceal
disclose publish : withhold
public : private secret
publicly : privately
transparent : opaque
import : export
importer : exporter
buy : sell
buyer : seller vendor
bought purchased : sold
demand : supply
lend : borrow
lender creditor : borrower debtor
asset : liability
income revenue : expense expenditure
earn : spend
deposit : withdraw
deposits : withdrawals
credit : debit
pay : owe
paid : unpaid
taxable : exempt
hire employ recruit : fire dismiss sack
hired : fired dismissed
employer : employee
employed : unemployed
appoint elect : dismiss
landlord : tenant
lessor : lessee
teacher : student pupil
parent : child
mother : father
son : daughter
brother : sister
husband : wife
man male : woman female
men : women
boy : girl
king : queen
uncle : aunt
host : guest
doctor : patient
adult : child minor
senior : junior
captain : crew
master : servant
build construct : demolish destroy
built constructed : demolished destroyed
create establish found : destroy abolish dissolve
establish : abolish
produce : consume
producer : consumer
generate : consume
repair fix : break damage
fixed : broken
intact : damaged broken
rescue : abandon
keep retain preserve : discard delete remove lose
longer : shorter
easier simpler : harder
admit confess : deny
survive : die
use : disable
suspend : resume
hold : release
catch : release
push : pull
lift raise : lower
raise : cut
raised lifted : lowered
sink : float
stand : sit
stretch : bend
bend : straighten
inhale : exhale
absorb : emit
attract : repel
attractive : repulsive
unite merge : separate split divide
unity : division
marry : divorce
married : unmarried single divorced
together : apart separately
joint : separate
whole entire : partial
complete : incomplete partial
completely fully entirely : partly partially
total : partial
general : specific
exact precise : approximate
exactly : approximately
accurate : inaccurate
correct right : incorrect wrong false
true : false untrue
truth : lie falsehood
genuine authentic real : fake counterfeit
original : copy replica
natural : artificial synthetic
organic : inorganic
raw : cooked
sweet : sour bitter
fertile : infertile barren
wild : tame domesticated
possible : impossible
possibility : impossibility
able : unable
capable : incapable
ability : inability
likely probable : unlikely improbable
certain sure : uncertain unsure
known : unknown
famous : obscure unknown
familiar : unfamiliar
visible : invisible
available : unavailable
accessible : inaccessible
present : absent
presence : absence
attend : miss
active : inactive dormant extinct
extinct : extant
activity : inactivity
busy : idle
online : offline
manual : automatic
manually : automatically
wireless : wired
digital : analog
synchronous : asynchronous
static : dynamic
mutable : immutable
public : private
free : occupied busy
vacant : occupied
open : secret
responsible : irresponsible
reliable : unreliable
reversible : irreversible
equal : unequal
equality : inequality
similar alike same : different
identical : different distinct
similarity : difference
regular : exceptional
normal : abnormal
ordinary usual : unusual extraordinary
rational : irrational
formal : informal
official : unofficial
direct : indirect
directly : indirectly
literate : illiterate
mature : immature
patient : impatient
polite : rude impolite
honest : dishonest
loyal : disloyal
brave : cowardly
obey comply : disobey violate
compliance : violation
remember : forget
notice : overlook ignore
heed : ignore
solve : cause
hinder : help
help aid : hinder harm
facilitate : impede hinder
relieve ease : aggravate
calm : agitate
comfort : discomfort
comfortable : uncomfortable
sleep : wake
asleep : awake
morning : evening afternoon
noon midday : midnight
sunrise dawn : sunset dusk
summer : winter
spring : autumn
weekday : weekend
today : tomorrow yesterday
tomorrow : yesterday
black : white
odd : even
singular : plural
positive : neutral
employee : contractor
citizen : foreigner
conservative : liberal progressive
democrat : republican
socialist : capitalist
civilian : military soldier
amateur : professional
expert : novice beginner
experienced : inexperienced
skilled : unskilled
qualified : unqualified
eligible : ineligible
eligibility : ineligibility
entitled : ineligible
authorized : unauthorized
licensed : unlicensed
registered : unregistered
insured : uninsured
armed : unarmed
restricted limited : unrestricted unlimited
finite : infinite
conditional : unconditional
refundable : nonrefundable
renewable : nonrenewable
smoker : nonsmoker
fiction : nonfiction
import : produce
wholesale : retail
gross : net
upload : download
sender : recipient receiver
send : receive
give : take receive
teach : learn
ask : answer
theory : practice
ally : enemy
arrive : miss
proceed continue resume : cease stop discontinue
continue : interrupt
postpone delay : hasten
delayed late : punctual
ahead : behind
leader : follower
superior : inferior
dominate : submit
prosper thrive : decline
flourish : wither
benefit : suffer
reward : punish penalty
pleasure : pain
hope : despair
trust : distrust
respect : disrespect
order : disorder chaos
guilty : blameless
tolerate : forbid
mandate : waive
impose : lift waive
levy : waive
charge : waive
breach : honor
ratify sign : repeal
enact introduce : repeal abolish
repeal revoke cancel : renew
expire lapse : renew
renew extend : terminate
terminate : continue
occupy : vacate
settle : dispute
innocence : guilt
vertical : horizontal
convex : concave
acid acidic : alkaline basic
anode : cathode
proton : electron
input : output
male : female
arid : wet
flood : drought
evaporate : condense
brittle : ductile flexible
praise acclaim laud : pan criticise slam
rigid stiff : flexible
"""
