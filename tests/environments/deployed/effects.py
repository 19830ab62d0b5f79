"""A WSGI application whose requests do something that must not be done twice: a line in a file. The reply is the request's name."""

import os
import time

from answers import answer

lines = os.open("effects", os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def wsgi(environment, start_response):
    name = environment["PATH_INFO"].strip("/")
    answer(name)
    time.sleep(0.05)  # greenlets of other requests run meanwhile, as beside a call of a database
    os.write(lines, f"{os.getpid()} {name}\n".encode())
    start_response("200 OK", [("Content-Length", str(len(name)))])
    return [name.encode()]
