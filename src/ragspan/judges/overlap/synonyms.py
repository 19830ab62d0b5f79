"""English words that are compared as one.

The words in one line mean the same where a response is held against a context; each stands in one line only.
"""

SYNONYMS = """
increase raise rise rose risen grow grew grown growth climb soar surge jump
decrease fall fell fallen drop decline dip plunge slump sink sank cut lower reduce reduction
begin began begun start commence onset
end finish conclude complete completion conclusion
purchase buy bought acquire acquisition
sell sold sale
holiday vacation leave
yearly annual annually year
monthly month
weekly week
daily day
defeat beat beaten
win won
lose lost loses loss
employee staff worker personnel
require requirement need
mandatory compulsory obligatory
optional voluntary
allow permit tolerate permissible permission authorise authorize
forbid forbidden prohibit ban disallow
build built construct construction erect
make made manufacture produce production
create creation establish establishment found founded founder
cost price fee charge
pay paid payment
refund reimburse reimbursement reimbursable
buyer customer purchaser client
send sent ship shipping dispatch
delivery deliver
help assist assistance aid
child children kid
man men
woman women
person people persons
big large huge
bigger larger
biggest largest
small little tiny
fast quick rapid
faster quicker
expensive costly
cheap inexpensive
ill sick
doctor physician
medicine drug medication
illness disease sickness
car automobile
film movie
home house
street road
country nation
company firm enterprise corporation
boss chief
picture photo photograph photography image
phone telephone
near nearby
maximum max
minimum min
approximately roughly around about circa
frequent common often
rare rarely seldom
entitled eligible entitlement
receive received obtain receipt reception
earn salary wage earnings
apartment flat
cancel cancellation terminate termination
contract agreement
quit resign
die died death dead
born birth
choose chose chosen select pick choice
show display
error mistake
problem trouble
answer reply
speak spoke spoken talk
tell told
write wrote written author
teach taught
think thought
know knew known
eat ate eaten
drink drank drunk
drive drove driven
fly flew flown flight
run ran
sing sang sung
take took taken
hold held
keep kept retain
find discover
lead led
shut closed
open opened opening
arrive arrival arrives
depart departure departs
translate translation
destroy destruction
assess evaluate
immediate instant instantly immediately
free gratis complimentary freedom
accurate precise exact
correct right
document file
weight weigh
height high tall
length long
width wide
depth deep
age old
last duration
live lived reside resident
locate location situate
name call
teacher instructor
pupil student
rule regulation
law statute
remove removal delete deletion erase
add addition
change modify alter
repair fix mend
operate operation
treat treatment
visit visitor
sleep slept asleep
cause caused
recommend recommendation advise advice
verify check
guarantee warranty
goal objective
noon midday
kilogram kg kilogramme
gram g
metre meter
kilometre kilometer km
litre liter
acquit acquittal
convict conviction
reject rejection refuse refusal deny denial
accept acceptance
approve approval
grant granted
oppose opposition
attend attendance participate participation
include inclusion
exclude exclusion
contain containing
provide provision
explode explosion
erupt eruption
arrange organise organize
examine inspect examination inspection
elect election
marry marriage wed
owner own owns ownership
jury juror
consent agree
allergy allergic
decide decision
fail failure
succeed success
analyze analyse analysis
believe belief
prove proof
sign signature
describe description
divide division
invade invasion
expand expansion
extend extension
explain explanation
apply application
publish publication
compete competition
repeat repetition
solve solution
resolve resolution
revolve revolution
argue argument
judge judgment judgement
collide collision
expose exposure
press pressure
mix mixture
serve service
strong strength strengthen
weak weakness weaken
hot heat
safe safety
true truth
poor poverty
rich wealthy wealth
wise wisdom
hungry hunger
thirsty thirst
angry anger
proud pride
absent absence
present presence
silent silence
violent violence
able ability
majority most
besiege siege
twice double
"""
