"""Answers requests in batches: those that arrive within a short window run together."""

import queue
import threading
import time

WINDOW = 0.02  # seconds
PAD = 0


class Request:
    def __init__(self, prompt, limit, end):
        self.prompt, self.limit, self.end = prompt, limit, end
        self.tokens, self.error, self.done = [], None, threading.Event()

    def finished(self):
        return len(self.tokens) >= self.limit or self.tokens[-1:] == [self.end]


class Batcher:
    def __init__(self, model, most=8):
        self.model, self.most, self.waiting = model, most, queue.Queue()
        threading.Thread(target=self.run, daemon=True).start()

    def generate(self, prompt, limit, end=None):
        """Returns at most limit tokens; end ends the answer."""
        request = Request(prompt, limit, end)
        self.waiting.put(request)
        request.done.wait()
        if request.error:
            raise request.error
        return request.tokens

    def run(self):
        while True:
            batch = [self.waiting.get()]
            closes = time.monotonic() + WINDOW
            while len(batch) < self.most:
                try:
                    batch.append(self.waiting.get(timeout=max(0, closes - time.monotonic())))
                except queue.Empty:
                    break
            try:
                self.answer(batch)
            except Exception as error:
                for request in batch:
                    request.error = error
            for request in batch:
                request.done.set()

    def answer(self, batch):
        longest = max(len(request.prompt) for request in batch)
        rows = []
        for request in batch:
            pads = longest - len(request.prompt)
            mask = [False] * pads + [True] * len(request.prompt)
            cache = []
            for position, token in enumerate([PAD] * pads + request.prompt):
                last = self.model.extend(cache, token, position - pads)
            rows.append((request, cache, mask, last))
        while rows:
            rows = [row for row in map(self.step, rows) if not row[0].finished()]

    def step(self, row):
        request, cache, mask, last = row
        logits = self.model.logits(cache, mask, *last)
        token = max(range(len(logits)), key=logits.__getitem__)
        request.tokens.append(token)
        last = self.model.extend(cache, token, sum(mask))
        return request, cache, mask + [True], last
