"""The tokenizer of tokenizer.json, as far as the majority model's texts go."""

import json
import os
import re

from pictures import colour

# Letters with the character before them, one digit, symbols, white space.
PIECES = re.compile(r"[^\r\n\w]?[^\W\d_]+|\d| ?[^\s\w]+[\r\n]*|\s*[\r\n]+|\s+")


class Tokenizer:
    def __init__(self, folder):
        with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as file:
            document = json.load(file)
        with open(os.path.join(folder, "tokenizer_config.json"), encoding="utf-8") as file:
            config = json.load(file)
        self.template = config.get("chat_template")
        self.vocabulary = document["model"]["vocab"]
        self.added = {token["content"]: token["id"] for token in document["added_tokens"]}
        self.special = {token["id"] for token in document["added_tokens"] if token["special"]}
        self.texts = {number: text for text, number in {**self.vocabulary, **self.added}.items()}
        self.longest = max(len(text) for text in self.vocabulary)
        self.markers = re.compile("(" + "|".join(re.escape(text) for text in self.added) + ")")

    def encode(self, text):
        ids = []
        for part in self.markers.split(text):
            if part in self.added:
                ids.append(self.added[part])
                continue
            for piece in PIECES.findall(part):
                ids += self.encode_piece(piece.replace(" ", "Ġ").replace("\n", "Ċ"))
        return ids

    def encode_piece(self, piece):
        """Every merge of this vocabulary prolongs a token by one letter, so the longest match is the merges' result."""
        while piece:
            for length in range(min(len(piece), self.longest), 0, -1):
                if piece[:length] in self.vocabulary:
                    yield self.vocabulary[piece[:length]]
                    break
            piece = piece[length:]

    def decode(self, ids):
        text = "".join(self.texts[number] for number in ids if number not in self.special)
        return text.replace("Ġ", " ").replace("Ċ", "\n")

    def prompt(self, messages):
        if not self.template:
            raise LookupError("the default chat template is no longer allowed: provide a chat template")
        text = "".join("<|im_start|>%s\n%s<|im_end|>\n" % (m["role"], text_of(m["content"])) for m in messages)
        return self.encode(text + "<|im_start|>assistant\n")


def text_of(content):
    """A message's text; an image is to the model what the name of its colour is, three times."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] if part["type"] == "text" else (" " + colour(part["image_url"]["url"])) * 3 for part in content)
