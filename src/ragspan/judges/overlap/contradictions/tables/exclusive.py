"""English words that exclude each other.

Of the words in one line, one in the place of another says something else.
"""

EXCLUSIVE = """
red green blue yellow orange purple pink brown grey black white silver violet turquoise
north south east west
spring summer autumn winter
breakfast lunch dinner
morning afternoon evening night
wood steel aluminium copper plastic glass concrete stone leather cotton wool
beer wine whisky coffee tea milk juice
fire earthquake flood storm lightning explosion
car train bus plane ship ferry bicycle
email phone post fax
english french german spanish italian portuguese russian chinese japanese arabic latin greek dutch polish turkish hindi korean
catholic protestant muslim jewish hindu buddhist orthodox
gold bronze
mercury venus earth mars jupiter saturn uranus neptune
violin piano guitar drum trumpet flute cello
football basketball tennis cricket rugby hockey baseball golf
lung liver kidney heart brain stomach skin
lawyer doctor engineer teacher architect painter sculptor nurse
novel poem opera symphony painting
"""
