"""A server in an event loop that handles SIGTERM. After three answers the loop is closed, and the server goes on without one.

The engine looks for the signal's handler five times a second: many answers follow, so that it has looked before SIGTERM comes.
"""

import asyncio
import signal
import socket
import sys

from answers import answer, chain

REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\n0"
listening = socket.create_server(("127.0.0.1", 0))


def name_in(request):
    return request.split()[1].decode().strip("/")


async def serve():
    done = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, done.set)
    given = 0

    async def give(reader, writer):
        nonlocal given
        request = await reader.readuntil(b"\r\n\r\n")
        await chain.with_config(run_name=name_in(request)).ainvoke("When are card payments settled?")
        writer.write(REPLY)
        await writer.drain()
        writer.close()
        given += 1
        if given >= 3:
            done.set()

    server = await asyncio.start_server(give, sock=listening.dup())
    await done.wait()
    server.close()


sys.stdout.write(f"http://127.0.0.1:{listening.getsockname()[1]}\n")
asyncio.run(serve())
listening.setblocking(True)
while True:
    connection, _ = listening.accept()
    with connection:
        answer(name_in(connection.recv(65536)))
        connection.sendall(REPLY)
