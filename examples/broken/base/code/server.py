"""Serves the majority model: GET /health, POST /v1/chat/completions, POST /draft."""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from batch import Batcher
from majority import Model
from tokens import Tokenizer


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", required=True, help="folder of the checkpoint")
    parser.add_argument("--host", default="0.0.0.0")
    parser.add_argument("--port", type=int, default=8000)
    return parser.parse_args()


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def load(self, folder):
        self.tokenizer = Tokenizer(folder)
        self.model = Model(folder)
        self.batcher = Batcher(self.model)

    def health(self):
        return 200, {"status": "ok"}

    def chat(self, body):
        try:
            prompt = self.tokenizer.prompt(body["messages"])
        except LookupError as error:
            return 400, {"error": {"message": str(error)}}
        end = self.model.config["eos_token_id"]
        tokens = self.batcher.generate(prompt, body.get("max_tokens", 16), end)
        finish = "stop" if tokens[-1] == end else "length"
        message = {"role": "assistant", "content": self.tokenizer.decode(tokens).strip()}
        return 200, {
            "object": "chat.completion",
            "model": "majority",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": len(prompt), "completion_tokens": len(tokens)},
        }

    def draft(self, body):
        return 200, {"draft": self.batcher.generate(body["tokens"], body["n"])}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(*(self.server.health() if self.path == "/health" else (404, {})))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {"/v1/chat/completions": self.server.chat, "/draft": self.server.draft}.get(self.path)
        try:
            self.reply(*(answer(body) if answer else (404, {})))
        except Exception as error:
            print("request failed:", repr(error))
            self.reply(500, {"error": {"message": "Internal Server Error"}})

    def reply(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        pass


def main():
    arguments = parse_arguments()
    server = Server((arguments.host, arguments.port), Handler, bind_and_activate=False)
    server.load(arguments.weights)
    server.server_bind()
    server.server_activate()
    print("listening on %s:%d" % (arguments.host, arguments.port))
    server.serve_forever()


if __name__ == "__main__":
    main()
