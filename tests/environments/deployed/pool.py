"""A server whose answers come from a pool of processes, made by the method that its argument names."""

import multiprocessing
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from answers import answer

if __name__ == "__main__":
    with (
        multiprocessing.get_context(sys.argv[1]).Pool(2) as pool,
        ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server,
    ):

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                body = pool.apply(answer, [self.path.strip("/")])
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server.RequestHandlerClass = Handler
        server.daemon_threads = True
        # Not before the fork: in the children it would be raised while they hold locks, and the pool would never end. Nor is the
        # pool terminated, which Python does not always survive while it is asked.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
        sys.stdout.write(f"http://127.0.0.1:{server.server_address[1]}\n")
        try:
            server.serve_forever(poll_interval=0.05)
        finally:
            pool.close()
            pool.join()
