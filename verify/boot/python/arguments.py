# Runs a Python program up to where it has read its command line, and says what
# became of that. It is given to python3 -c with the words SECRET KIND NAME ARGS;
# KIND is file or module. What it has to say it prints as one line of JSON behind
# SECRET.
import sys

secret, kind, name = sys.argv[1:4]
words = sys.argv[4:]

import argparse, json, os

told = os.dup(1)


def tell(what, text=""):
    line = json.dumps({"what": what, "text": str(text)[:2000]})
    os.write(told, ("\n" + secret + line + "\n").encode())
    sys.stderr.flush()
    os._exit(0)


# What a program does before it has read its command line it may have done for
# good. It is stopped at the first such act that Python announces by an audit
# event; there is none for what an extension does by itself, or for os.mkfifo.
ACTS = {
    "subprocess.Popen": "starts a program", "os.system": "starts a program", "os.exec": "starts a program", "os.posix_spawn": "starts a program",
    "os.fork": "starts a process", "os.forkpty": "starts a process", "os.kill": "signals a process", "os.killpg": "signals processes",
    "socket.bind": "binds a port", "socket.connect": "connects to an address", "socket.sendto": "sends to an address", "socket.sendmsg": "sends to an address",
    "os.remove": "removes a file", "os.rename": "moves a file", "os.rmdir": "removes a folder", "os.truncate": "cuts a file", "shutil.rmtree": "removes a folder",
    "os.symlink": "makes a link", "os.link": "makes a link", "os.chmod": "changes a file's mode", "os.chown": "changes a file's owner",
    "os.utime": "changes a file's times", "os.setxattr": "changes a file's attributes", "os.removexattr": "changes a file's attributes",
}


def watch(event, arguments):
    if event in ACTS:
        tell("stopped", ACTS[event])
    if event == "os.mkdir" and not os.path.isdir(arguments[0]):  # os.makedirs tries it of folders that are there
        tell("stopped", "makes the folder %s" % arguments[0])
    if event == "sqlite3.connect" and os.fsdecode(arguments[0]) != ":memory:":
        tell("stopped", "opens the database %s" % os.fsdecode(arguments[0]))
    if event == "open":
        path, mode, flags = arguments
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        if writes and not str(path).startswith("/dev/"):
            tell("stopped", "writes the file %s" % path)


depth = 0
refusal = None  # what a parser said last
known = argparse.ArgumentParser.parse_known_args
complain = argparse.ArgumentParser.error


def own(args):
    """Whether a parser reads the command line, not words of the program's own."""
    return args is None or list(args) == words or any(word in words for word in args)


def help_of(parser):
    try:
        parser.format_help()
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)
    return ""


def parse_known_args(self, args=None, namespace=None):
    global depth
    outermost, depth = depth == 0, depth + 1
    try:
        result = known(self, args, namespace)
    finally:
        depth -= 1
    if outermost and own(args) and not result[1]:
        tell("parsed", help_of(self))
    return result  # words that are left are for another parser, or for nobody


def whole(parse):
    def replacement(self, args=None, namespace=None):
        global depth
        depth += 1
        try:
            result = parse(self, args, namespace)
        finally:
            depth -= 1
        if depth == 0 and own(args):
            tell("parsed", help_of(self))
        return result

    return replacement


def error(self, message):
    global refusal
    refusal = message
    complain(self, message)


Parser = argparse.ArgumentParser
Parser.parse_known_args, Parser.error = parse_known_args, error
for method in ("parse_args", "parse_intermixed_args", "parse_known_intermixed_args"):
    if hasattr(Parser, method):
        setattr(Parser, method, whole(getattr(Parser, method)))


def main():
    import runpy

    safe = sys.flags.isolated or getattr(sys.flags, "safe_path", False)
    if not safe:
        sys.path[0] = os.path.dirname(os.path.abspath(name)) if kind == "file" else os.getcwd()
    sys.argv[:] = [name] + words
    sys.dont_write_bytecode = True
    sys.addaudithook(watch)
    if kind == "file":
        runpy.run_path(name, run_name="__main__")
    else:
        runpy.run_module(name, run_name="__main__", alter_sys=True)


def inside_parser(error):
    trace = error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == argparse.__file__:
            return True
        trace = trace.tb_next
    return False


try:
    main()
except SystemExit as ended:
    if ended.code not in (None, 0) and inside_parser(ended):  # a program that caught it went on
        tell("refused", refusal if refusal is not None else "exit status %s" % ended.code)
    tell("ended", "exit status %s" % (ended.code or 0))
except BaseException as failed:
    text = "%s: %s" % (type(failed).__name__, failed)
    if inside_parser(failed) and "badly formed help string" in text:
        tell("parsed", text)  # of Python 3.14 on, add_argument tries what --help will print
    tell("refused" if inside_parser(failed) else "ended", text)
tell("ended", "at its end")
