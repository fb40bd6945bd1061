"""The options of a script's command, as the script's own parser has them: which there are, and what they are now.

Parsers are seen where they parse the words of the command; nanoGPT's configurator, which has none, by the text.
"""
import ast
import dataclasses
import functools
import os
import sys

from memreplay_record import on_import
from memreplay_record._lost import fields_of, quietly

_PLAIN = (bool, int, float, str)
_WHAT = "the options of the command"


class Option:
    """An option that may be given once more, at the end of the command, with another value."""

    def __init__(self, name, value, form, choices=(), switch=()):
        self.name = name.lstrip("-").replace("-", "_").lower()  # "trainer.batch_size"
        self.value = value if value is None or isinstance(value, _PLAIN) else getattr(value, "value", None)
        self.form = form  # its words, with {} for the value
        self.choices = [each for each in choices if isinstance(each, _PLAIN)]
        self._switch = switch  # the words that turn it on, if that takes no value

    @property
    def key(self):
        return self.name.rpartition(".")[2]

    def words(self, value):
        """Returns the words that give it a value, or [] if it does not take that."""
        if self._switch:
            return list(self._switch) if value is True else []
        if self.choices and value not in self.choices:
            return []
        return [word.format(value) for word in self.form]


_found = {}  # name -> Option; a later parser's are those that count
_rests = []  # lists of words that a parser left to the next one
_depth = [0]  # of parsers that run, by one another


def found():
    """Returns the options of the command of this process."""
    _see_configurator()
    return list(_found.values())


def begin():
    """Watches the parsers that the script may import."""
    for name, watch in (("argparse", _watch_argparse), ("click.core", _watch_click),
                        ("typer._click.core", _watch_click),
                        ("fire.core", _watch_fire), ("absl.flags._flagvalues", _watch_absl), ("tyro", _watch_tyro),
                        ("hydra.core.hydra_config", _watch_hydra)):
        on_import.after(name, watch)


def _add(option):
    _found[option.name] = option


def _around(owner, name, before=None, after=None):
    """Calls before(args, kwargs) and after(args, kwargs, result) around each call of a function."""
    function = getattr(owner, name)
    before = quietly(_WHAT)(before or (lambda args, kwargs: None))
    after = quietly(_WHAT)(after or (lambda args, kwargs, result: None))

    @functools.wraps(function)
    def called(*args, **kwargs):
        before(args, kwargs)
        _depth[0] += 1
        try:
            result = function(*args, **kwargs)
        finally:
            _depth[0] -= 1
        after(args, kwargs, result)
        return result

    setattr(owner, name, called)


# Each of argparse, among them HfArgumentParser's.


def _watch_argparse(module):
    def after(args, kwargs, result):
        this, words = args[0], args[1] if len(args) > 1 else kwargs.get("args")
        namespace, rest = result
        positional = [each for each in this._actions if not each.option_strings]
        is_read = _is_of_command(words)
        _rests.append(rest)
        # Words at the end are those of a subcommand, or of what takes all that is left.
        if is_read and not any(each.nargs in (module.PARSER, module.REMAINDER) for each in positional):
            for action in this._actions:
                _add_action(module, action, getattr(namespace, action.dest, None))

    _around(module.ArgumentParser, "parse_known_args", after=after)


def _is_of_command(words):
    """Returns whether words at the end of the command would be among these."""
    given = sys.argv[1:]
    if "--" in given:
        return False
    if words is None or any(words is rest for rest in _rests):
        return True
    words = list(words)
    return words == given[len(given) - len(words):] if words else not given or _depth[0] > 0


def _add_action(module, action, value):
    names = sorted(action.option_strings, key=lambda each: (not each.startswith("--"), each.startswith("--no-")))
    is_switch = action.nargs == 0 and (action.const is True or type(action).__name__ == "BooleanOptionalAction")
    takes_one = isinstance(action, module._StoreAction) and action.nargs in (None, "?")
    if names and (is_switch or takes_one):
        form = [f"{names[0]}={{}}"] if names[0].startswith("--") else [names[0], "{}"]
        _add(Option(names[0], value, form, action.choices or (), names[:1] if is_switch else ()))


def _watch_click(module):
    def before(args, kwargs):
        this, context = args[:2]
        if hasattr(this, "list_commands"):  # a group, the words at whose end are those of its command
            return
        for each in this.params:
            if hasattr(each, "is_flag") and not each.multiple and each.nargs == 1 and not each.count:
                name = next((opt for opt in each.opts if opt.startswith("--")), None)
                if name is not None:
                    choices = getattr(getattr(each, "type", None), "choices", ())
                    _add(Option(name, context.params.get(each.name), [f"{name}={{}}"], choices,
                                [name] if each.is_flag else ()))

    _around(module.Command, "invoke", before=before)


def _watch_fire(module):
    make = module._MakeParseFn

    @functools.wraps(make)
    def made(function, *args, **kwargs):
        parse = make(function, *args, **kwargs)

        @functools.wraps(parse)
        def parsed(words):
            result = parse(words)
            note(result)
            return result

        @quietly(_WHAT)
        def note(result):
            spec, (values, named) = module.inspectutils.GetFullArgSpec(function), result[0]
            for name, value in {**spec.kwonlydefaults, **dict(zip(spec.args, values)), **named}.items():
                _add(Option(name, value, [f"--{name}={{}}"]))
        return parsed

    module._MakeParseFn = made


def _watch_absl(module):
    def after(args, kwargs, result):
        flags = args[0]
        for name in flags:
            flag = flags[name]
            if name == flag.name:
                choices = getattr(flag.parser, "enum_values", ())
                _add(Option(name, flag.value, [f"--{name}={{}}"], choices, [f"--{name}"] if flag.boolean else ()))

    _around(module.FlagValues, "__call__", after=after)


def _watch_tyro(module):
    def after(args, kwargs, result):
        if kwargs.get("args") is None and dataclasses.is_dataclass(result):
            add_fields("", result, "_" if kwargs.get("use_underscores") else "-")

    def add_fields(path, owner, delimiter):
        for field in dataclasses.fields(owner):
            name, value = f"{path}{field.name}", fields_of(owner).get(field.name)
            word = "--" + name.replace("_", delimiter)
            if dataclasses.is_dataclass(value):
                add_fields(f"{name}.", value, delimiter)
            else:
                _add(Option(name, value, [f"{word}={{}}"], getattr(field.type, "__args__", ()),
                            [word] if isinstance(value, bool) else ()))

    _around(module, "cli", after=after)


def _watch_hydra(module):
    def before(args, kwargs):
        from omegaconf import OmegaConf
        add("", {name: value for name, value in OmegaConf.to_container(args[1], resolve=False).items()
                 if name != "hydra"})

    def add(path, values):
        for name, value in values.items():
            if isinstance(value, dict):
                add(f"{path}{name}.", value)
            elif not (isinstance(value, str) and "$" in value):
                _add(Option(f"{path}{name}", value, [f"{path}{name}={{}}"]))

    _around(module.HydraConfig, "set_config", before=before)


@quietly(_WHAT)
def _see_configurator():
    """Sees nanoGPT's: words --name=value change variables of the script, by exec() of another file."""
    main, path = sys.modules["__main__"], sys.argv[0]  # __main__ has no __file__ any more when the script is over
    if not os.path.isfile(path) or "--" in sys.argv:
        return
    with open(path, "rb") as file:
        statements = ast.parse(file.read()).body
    at = next((at for at, each in enumerate(statements) if _is_configurator(each, os.path.dirname(path))), 0)
    names = {target.id for each in statements[:at] if isinstance(each, ast.Assign) for target in each.targets
             if isinstance(target, ast.Name)}
    later = {node.id for each in statements[at + 1:] for node in ast.walk(each)
             if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for name in names - (later if int(os.environ.get("WORLD_SIZE", 1)) > 1 else set()):
        value = vars(main).get(name)
        if not name.startswith("_") and isinstance(value, _PLAIN):
            _add(Option(name, value, [f"--{name}={{}}"]))


def _is_configurator(statement, folder):
    """Returns whether a statement is exec(open(FILE).read()) of a file that sets variables by words of the command."""
    texts = [node.value for node in ast.walk(statement) if isinstance(node, ast.Constant) and
             isinstance(node.value, str) and node.value.endswith(".py")]
    if not isinstance(statement, ast.Expr) or not ast.unparse(statement).startswith("exec(open(") or len(texts) != 1:
        return False
    for place in (texts[0], os.path.join(folder, texts[0])):
        if os.path.exists(place):
            with open(place, encoding="utf-8", errors="replace") as file:
                text = file.read()
            return "argv" in text and "globals()" in text
    return False
