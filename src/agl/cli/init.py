"""`agl init`."""

from __future__ import annotations

from agl.cli.context import Context
from agl.cli.page import Page, document_of
from agl.cli.parsing import Parser


def answer(argv: list[str], context: Context) -> Page:
    parser = Parser(
        "init",
        "Registers this repository, or changes how it is checked. Of a new one without a flag, a"
        "\nperson at a terminal is asked; the command that its files speak for is proposed.",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--build",
        metavar="CMD",
        help="the shell command that says with its exit status whether a tree is good",
    )
    how.add_argument("--no-build", action="store_true", help="nothing checks this repository")
    parser.add_argument(
        "--setup",
        metavar="CMD",
        help="the shell command that is run in each new worktree, '' for none",
    )
    parser.add_argument(
        "--copy",
        metavar="PATTERN",
        action="append",
        help="ignored files of your checkout that come along into each new worktree, like .env;"
        " may be repeated, '' for none",
    )
    args = parser.parse(argv)
    copy = None if args.copy is None else tuple(one for one in args.copy if one)
    done = context.init(args.build, no_build=args.no_build, setup=args.setup, copy=copy)
    project = done.project
    what = "registered" if done.created else "changed" if done.changed else "registered already"
    text = f"{project.name}: {what}\nrepository  {project.folder}\ntrees       {done.trees}\n"
    text += f"build       {project.build or 'none'}"
    if project.setup is not None:
        text += f"\nsetup       {project.setup}"
    if project.copy:
        text += f"\ncopy        {', '.join(project.copy)}"
    return Page(document_of(done), text)
