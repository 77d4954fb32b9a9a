"""Names the colour of a PNG of one colour, in a data URL."""

import base64
import zlib

COLOURS = {
    (255, 191, 0): "amber",
    (0, 0, 0): "black",
    (0, 0, 255): "blue",
    (139, 69, 19): "brown",
    (255, 127, 80): "coral",
    (255, 253, 208): "cream",
    (0, 128, 0): "green",
    (128, 128, 128): "grey",
    (200, 162, 200): "lilac",
    (128, 128, 0): "olive",
    (255, 165, 0): "orange",
    (255, 192, 203): "pink",
    (128, 0, 128): "purple",
    (255, 0, 0): "red",
    (255, 255, 255): "white",
    (255, 255, 0): "yellow",
}


def colour(url):
    data = base64.b64decode(url.partition(",")[2])
    pixels = data[data.index(b"IDAT") + 4 :]
    # The first row begins with its filter, which leaves its first pixel alone.
    return COLOURS[tuple(zlib.decompressobj().decompress(pixels, 4)[1:])]
