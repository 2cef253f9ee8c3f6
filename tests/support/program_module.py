"""Programs of Ansible's roles and of the image, which have no .py, as modules."""

import importlib.machinery
import importlib.util
import sys


def module_of(program):
    """A fresh one, whose constants and calls a test may change; nothing is written beside the program."""
    name = program.name.replace("-", "_")
    loader = importlib.machinery.SourceFileLoader(name, str(program))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module  # where a dataclass looks for its own
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module
