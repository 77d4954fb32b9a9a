"""Writes rendered.json: what Python's jinja2, set up as Hugging Face's
transformers does, makes of the conversations in cases.json.

    pip install jinja2==3.1.6
    python render.py

Arguments of tool calls that are JSON objects are given to templates decoded, and
parts of text as one text to those that take no list, as servers do.
"""

import json
import pathlib

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = pathlib.Path(__file__).parent
TAKES_PARTS = {"qwen3_5"}


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def compiled(source):
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    return environment.from_string(source)


def turn(message, takes_parts):
    message = json.loads(json.dumps(message))
    content = message.get("content")
    if content is None:
        message["content"] = ""
    elif isinstance(content, list) and not takes_parts:
        message["content"] = "\n".join(part["text"] for part in content)
    for call in message.get("tool_calls", []):
        try:
            arguments = json.loads(call["function"]["arguments"])
        except ValueError:
            continue
        if isinstance(arguments, dict):
            call["function"]["arguments"] = arguments
    return message


def render(template, case, takes_parts):
    options = {} if case.get("enable_thinking") is None else {"enable_thinking": case["enable_thinking"]}
    try:
        messages = [turn(message, takes_parts) for message in case["messages"]]
        return {"prompt": template.render(
            messages=messages, tools=case.get("tools"), documents=None,
            add_generation_prompt=case.get("add_generation_prompt", True), eos_token="<|im_end|>", **options)}
    except jinja2.exceptions.TemplateError as error:
        return {"refused": str(error)}
    except TypeError:
        return {"fails": True}


def main():
    cases = json.loads((HERE / "cases.json").read_text())
    rendered = {}
    for path in sorted(HERE.glob("*.jinja")):
        template = compiled(path.read_text())
        rendered[path.stem] = {case["name"]: render(template, case, path.stem in TAKES_PARTS) for case in cases}
    (HERE / "rendered.json").write_text(json.dumps(rendered, ensure_ascii=False, indent=1) + "\n")


main()
