# Tries the imports that the start of a Python server has not tried. It is given
# to python3 -c with the words SECRET KIND NAME ROOT FIRST ONLY [WORD]...: the
# server is the file or module NAME, started with the WORDs, and ROOT is the
# submission. Every import has a number; those from FIRST on are tried, or ONLY
# one. What it has to say it prints as lines of JSON behind SECRET. The script
# that was started is not imported.
import sys

secret, kind, name, root = sys.argv[1:5]
first, only = int(sys.argv[5]), int(sys.argv[6])
words = sys.argv[7:]

import ast, json, os, threading, zipfile

told = os.dup(1)
LATE = 60  # seconds for one import
TRY = tuple(getattr(ast, kind) for kind in ("Try", "TryStar") if hasattr(ast, kind))
MATCH = tuple(getattr(ast, kind) for kind in ("Match",) if hasattr(ast, kind))
GUARDS = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException", "OSError"}
STANDARD = set(getattr(sys, "stdlib_module_names", ())) | set(sys.builtin_module_names)


def tell(**what):
    os.write(told, ("\n" + secret + json.dumps(what) + "\n").encode())


safe = sys.flags.isolated or getattr(sys.flags, "safe_path", False)
if not safe:
    sys.path[0] = os.path.dirname(os.path.abspath(name)) if kind == "file" else os.getcwd()
sys.dont_write_bytecode = True
sys.argv[:] = [name] + words
folders = [os.path.abspath(folder) for folder in sys.path]
inside = [folder for folder in folders if (folder + "/").startswith(root + "/")]


class Import:
    def __init__(self, node, module, lazy, guarded):
        self.node, self.module, self.lazy, self.guarded = node, module, lazy, guarded


class Module:
    """A Python file of the submission, and the imports that stand in it."""

    def __init__(self, dotted, path):
        self.dotted, self.path, self.package = dotted, path, dotted.rpartition(".")[0]
        if os.path.basename(path) == "__init__.py":
            self.package = dotted
        self.imports, self.computed, self.script = [], False, False
        self.direct, self.called, self.prepares = {}, set(), False
        try:
            with open(path, "rb") as file:
                tree = ast.parse(file.read(), path)
        except RecursionError as error:
            unread.append((path, str(error)))
            return
        except (OSError, SyntaxError, ValueError, MemoryError):
            return  # importing it says why
        self.walk(tree.body)
        self.direct = dict(direct(tree.body))
        self.called, self.prepares = set(called_in(tree)), any(map(alters, ast.walk(tree)))
        self.script = any(self.works(node) for node in tree.body)

    @staticmethod
    def works(node):
        """Whether a statement at the top of a file is one of a script: it does something, or asks what it was started with."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, *TRY)):
            return False
        if isinstance(node, (ast.For, ast.While, ast.With)) or isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            return True
        if isinstance(node, ast.If) and "__name__" in names_in(node.test):
            return True
        return bool(names_in(node) & {"argv", "parse_args"}) or any(
            isinstance(part, ast.Subscript) and "environ" in names_in(part.value) for part in ast.walk(node)
        )

    def walk(self, body):
        """Visits all nodes in order. What a program writes may nest deeper than Python calls."""
        left = [(node, False, False) for node in reversed(body)]
        while left:
            inner = list(self.visit(*left.pop()))
            left.extend(reversed(inner))

    def visit(self, node, lazy, guarded):
        """Looks at a node and yields those in it, each with whether it is lazy and guarded."""

        def within(nodes, lazy, guarded):
            return ((inner, lazy, guarded) for inner in nodes)

        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
                self.imports.append(Import(node, self, lazy, guarded))
        elif isinstance(node, TRY):
            caught = any(handler.type is None or GUARDS & names_in(handler.type) for handler in node.handlers)
            yield from within(node.body, lazy, guarded or caught)
            yield from within([*node.orelse, *node.finalbody], lazy, guarded)
            for handler in node.handlers:
                yield from within(handler.body, True, guarded)
        elif isinstance(node, ast.If) and "__name__" in names_in(node.test) and os.path.abspath(self.path) not in mains:
            yield from within(node.orelse, lazy, guarded)  # the body is for when the file is started
        elif isinstance(node, ast.If):
            yield from within(node.body, True, guarded or prepares(node.test))
            yield from within(node.orelse, True, guarded)
        elif isinstance(node, MATCH):
            yield (node.subject, lazy, guarded)
            yield from within(node.cases, True, guarded or prepares(node.subject))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from within(ast.iter_child_nodes(node), True, guarded)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            suppressed = any("suppress" in names_in(item.context_expr) for item in node.items)
            yield from within(ast.iter_child_nodes(node), lazy, guarded or suppressed)
        else:
            if isinstance(node, ast.Call) and names_in(node.func) & {"import_module", "__import__"}:
                self.call(node, guarded)
            yield from within(ast.iter_child_nodes(node), lazy, guarded)

    def call(self, node, guarded):
        target = node.args[0] if node.args else None
        if isinstance(target, ast.Constant) and isinstance(target.value, str) and not target.value.startswith("."):
            statement = ast.fix_missing_locations(ast.copy_location(ast.Import([ast.alias(target.value, None)]), node))
            self.imports.append(Import(statement, self, True, guarded))
        else:
            self.computed = True


SIMPLE = (ast.Import, ast.ImportFrom, ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Pass, ast.Global, ast.Nonlocal)


def direct(body):
    """(id of an import, name of its function), of those that whoever calls the function always meets."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from direct(node.body)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for inner in node.body:
                if not isinstance(inner, SIMPLE):
                    break
                if isinstance(inner, (ast.Import, ast.ImportFrom)):
                    yield id(inner), node.name


def called_in(tree):
    """The names of what is called. A function that is only named, in a table of backends say, may never be."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            yield node.func.id if isinstance(node.func, ast.Name) else node.func.attr


OF_SYS = {"path", "modules", "meta_path", "path_hooks", "path_importer_cache"}
ALTERING = {"meta_path", "path_hooks", "path_importer_cache", "__path__", "__import__", "environ", "environb", "putenv", "exec", "eval"}
MACHINERY = {"importlib", "imp", "site", "runpy", "pkgutil", "zipimport", "pkg_resources", "builtins"}


def alters(node):
    """Whether a node may change what can be imported, or how: then a trial apart from the server proves nothing."""
    if isinstance(node, ast.Attribute):
        return node.attr in ALTERING or node.attr in OF_SYS and isinstance(node.value, ast.Name) and node.value.id == "sys"
    if isinstance(node, ast.Name):
        return node.id in ALTERING
    if isinstance(node, ast.Import):
        return any(alias.name.split(".")[0] in MACHINERY or alias.name == "sys" and alias.asname for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        named = {alias.name for alias in node.names}
        return (node.module or "").split(".")[0] in MACHINERY or node.module == "sys" and bool(named & (OF_SYS | {"*"})) or node.module == "os" and bool(named & (ALTERING | {"*"}))
    return False


def prepares(test):
    """Whether a condition asks for what an import needs."""
    names = names_in(test)
    return "TYPE_CHECKING" in names or any(n == "find_spec" or "available" in n or n in ("platform", "version_info") for n in names)


def names_in(node):
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} | {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def own_file(dotted):
    """The file of a module that lies in the submission, or None."""
    for folder in inside:
        path = os.path.join(folder, *dotted.split("."))
        for candidate in (os.path.join(path, "__init__.py"), path + ".py"):
            if os.path.isfile(candidate):
                return candidate
    return None


def targets(item):
    """The dotted names that an import may load, longest last."""
    node = item.node
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = node.module or ""
    if node.level:
        parts = item.module.package.split(".") if item.module.package else []
        parts = parts[: len(parts) - node.level + 1]
        base = ".".join(parts + ([node.module] if node.module else []))
    return [base] + [base + "." + alias.name for alias in node.names if base and alias.name != "*"]


modules, eager = {}, set()  # by dotted name; those that the start has imported
mains = set()  # paths of what was started
unread = []  # files that nest too deep for Python's own reader, and what it says


def reach(item, by_start):
    """Follows an import into the submission's own files."""
    for dotted in targets(item):
        parts = dotted.split(".")
        for i in range(len(parts)):
            read(".".join(parts[: i + 1]), by_start)


def read(dotted, by_start):
    path = own_file(dotted) if dotted else None
    if path is None or path in mains or dotted in modules and (dotted in eager or not by_start):
        return
    if dotted not in modules:
        modules[dotted] = Module(dotted, path)
    if by_start:
        eager.add(dotted)
    for item in modules[dotted].imports:
        if not item.guarded:
            reach(item, by_start and not item.lazy)


def reached_modules():
    """What was started, and all that it may import of the submission."""
    roots = []
    if kind == "file":
        mains.add(os.path.abspath(name))
        roots.append(Module("__main__", name))
    else:
        dotted = name + ".__main__" if own_file(name + ".__main__") else name
        if own_file(dotted):
            mains.add(own_file(dotted))
            roots.append(Module(dotted, own_file(dotted)))
    for started in roots:
        for item in started.imports:
            if not item.guarded:
                reach(item, not item.lazy)
    for word in words:  # uvicorn's MODULE:NAME
        application = word.partition(":")[0]
        if ":" in word and application.replace(".", "").isidentifier():
            read(application, True)
    return roots + [modules[dotted] for dotted in sorted(modules)]


def trials():
    """(statement, module that it stands in or None, why it is tried, whether the server is sure to meet it), in order."""
    reached = reached_modules()
    prepared = any(module.prepares for module in reached)
    called = set().union(*(module.called for module in reached))
    computed = any(module.computed for module in reached)
    found = []
    for module in reached:
        for item in module.imports:
            top = [dotted.split(".")[0] for dotted in targets(item) if dotted]
            if item.guarded or not item.lazy or all(t in STANDARD and own_file(t) is None for t in top):
                continue  # what stands at the top of a module is tried with it
            if any(own_file(dotted) in mains for dotted in targets(item) if dotted):
                continue
            met = not prepared and module.direct.get(id(item.node)) in called
            found.append((item.node, module, "reached", met))
    for folder in inside:
        for entry in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            dotted = entry[:-3] if entry.endswith(".py") else entry
            path = own_file(dotted) if dotted.isidentifier() else None
            if path is None or path in mains or dotted in modules or dotted.startswith("__"):
                continue
            if not Module(dotted, path).script:
                found.append((statement(dotted), None, "computed" if computed else "own", False))
    for wheel in wheels():
        for dotted in tops(wheel):
            if not any(t.split(".")[0] == dotted for module in reached for item in module.imports for t in targets(item)):
                found.append((statement(dotted), None, os.path.relpath(wheel, root), False))
    return found


def statement(dotted):
    return ast.fix_missing_locations(ast.Import([ast.alias(dotted, None)], lineno=1, col_offset=0))


def wheels():
    for folder, _, files in sorted(os.walk(root)):
        for file in sorted(files):
            if file.endswith(".whl"):
                yield os.path.join(folder, file)


def tops(wheel):
    """The top-level modules of a wheel."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return []  # gate files says so
    found = set()
    for member in names:
        top, _, rest = member.partition("/")
        if not rest and top.endswith((".py", ".so")) or rest.endswith((".py", ".so")):
            found.add(top.split(".")[0] if not rest else top)
    return sorted(t for t in found if t.isidentifier() and not t.startswith("_"))


def text_of(node):
    if isinstance(node, ast.Import):
        return "import " + ", ".join(alias.name for alias in node.names)
    return "from %s%s import %s" % ("." * node.level, node.module or "", ", ".join(alias.name for alias in node.names))


def attempt(node, module):
    late = threading.Timer(LATE, lambda: (tell(late=LATE), os._exit(0)))
    late.daemon = True
    late.start()
    scope = {"__name__": "tried"}
    if module is not None and module.package:
        scope = {"__name__": module.package + ".tried", "__package__": module.package}
    try:
        exec(compile(ast.Module([node], []), "<import>", "exec"), scope)
    except BaseException as error:
        lines = str(error).strip().splitlines() or [""]
        return ("%s: %s" % (type(error).__name__, lines[-1])).rstrip(": "), absent(error)
    finally:
        late.cancel()
    return "", False


def absent(error):
    """Whether an exception is of a module that is nowhere."""
    if type(error) is not ModuleNotFoundError or not error.name:
        return False
    import importlib.util

    try:
        return importlib.util.find_spec(error.name) is None
    except ModuleNotFoundError:
        return True  # nor is the package that it would be in
    except BaseException:
        return False


def files_of(node, module):
    """The submission's own files that are the modules of an import."""
    names = targets(Import(node, module, True, False)) if module is not None else [node.names[0].name]
    return [path for path in map(own_file, filter(None, names)) if path and os.path.basename(path) != "__init__.py"]


def main():
    lost = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder and not os.path.exists(folder)]
    if lost:
        tell(lost=lost[0])
    found = trials()
    for path, why in unread:
        tell(unread=why, path=os.path.relpath(path, root))
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)  # what is imported may print without end
    os.dup2(silence, 2)
    for number, (node, module, why, met) in enumerate(found):
        if number < first or only >= 0 and number != only:
            continue
        path, line = (module.path, node.lineno) if module is not None else (own_file(node.names[0].name) or "", 0)
        tell(number=number, statement=text_of(node), path=os.path.relpath(path, root) if path else "", line=line, why=why, files=files_of(node, module))
        problem, gone = attempt(node, module)
        tell(ended=problem, certain=met and gone)
    tell(done=True)
    os._exit(0)


main()
