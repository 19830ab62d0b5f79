"""A program that answers in the greenlets of a pool, of the library that its argument names; each answer is one line of a file."""

import sys

if sys.argv[1] == "gevent":
    from gevent import monkey, pool

    monkey.patch_all()
    in_greenlets = pool.Pool(8).map
else:
    import eventlet

    eventlet.monkey_patch()
    in_greenlets = eventlet.GreenPool(8).imap

import os

from answers import answer

lines = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def give(number):
    answer(str(number))
    os.write(lines, f"{os.getpid()} {number}\n".encode())


list(in_greenlets(give, range(int(sys.argv[3]))))
