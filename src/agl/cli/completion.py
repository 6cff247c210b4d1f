"""`agl completion`: a shell's script, and the words that it asks for."""

from __future__ import annotations

from agl.cli.context import Context
from agl.cli.page import Page
from agl.cli.parsing import Parser

_BASH = """_agl() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "$(agl completion words "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)" \\
    -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _agl agl"""

_ZSH = """#compdef agl
_agl() {
  local -a found
  found=(${(f)"$(agl completion words "${(@)words[2,CURRENT-1]}" 2>/dev/null)"})
  compadd -a found
  (( $#found )) || _files
}
compdef _agl agl"""

_FISH = """complete -c agl -f -a '(agl completion words (commandline -opc)[2..] 2>/dev/null)'
complete -c agl -n '__fish_seen_subcommand_from run' -F"""

_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
_WITH_LABEL = ("resume", "clear", "show", "diff", "recover")
# Flags behind which stands something that AGL does not know beforehand.
_WITH_VALUE = (
    *("-n", "--label", "--from", "--answers", "--events"),
    *("--again", "--build", "--item", "--branch", "--home"),
)


def answer(argv: list[str], context: Context) -> Page:
    if argv[:1] == ["words"]:
        words = _words(argv[1:], context)
        return Page({"words": words}, "\n".join(words))
    parser = Parser(
        "completion",
        "Prints what makes a shell complete commands, labels and workflows. For bash, put"
        '\n`eval "$(agl completion bash)"` into ~/.bashrc.',
    )
    parser.add_argument("shell", choices=sorted(_SCRIPTS), help="the shell that is to complete")
    script = _SCRIPTS[parser.parse(argv).shell]
    return Page({"script": script}, script)


def _words(before: list[str], context: Context) -> list[str]:
    """What may stand after these words."""
    from agl.cli.main import COMMANDS
    from agl.config.entry_points import entry_points

    if before and before[-1] in _WITH_VALUE:
        return []
    if len(before) > 1 and before[0] == "run" and before[1] in entry_points("agl.workflows"):
        return _flags_of(before[1], before[-1])
    given = [word for word in before if not word.startswith("-")]
    if not given:
        return [*COMMANDS, *entry_points("agl.commands")]
    if given == ["run"] or given == ["workflows"]:
        return sorted(entry_points("agl.workflows"))
    if given[0] in _WITH_LABEL and (len(given) == 1 or given[0] == "clear"):
        from agl.api import reading

        _, runs = reading.runs(context.settings(), context.here)
        return [str(run.label) for run in runs if run.label not in given[1:]]
    return sorted(_SCRIPTS) if given == ["completion"] else []


def _flags_of(workflow: str, last: str) -> list[str]:
    """The flags of `agl run WORKFLOW`, those of the workflow first; none where `last` is one of
    them and takes a value."""
    from agl.api.workflows import details
    from agl.cli.apart import prints_apart
    from agl.cli.run import own_flags

    with prints_apart():
        parameters = details(workflow).parameters
    if any(last in one.flags and one.default is not False for one in parameters):
        return []
    return [*(flag for one in parameters for flag in one.flags), *own_flags()]
