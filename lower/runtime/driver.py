"""The machine code that runs native programs: one routine for all functions of all executables.

It is a CPython function with the vectorcall convention and keywords; its ``self`` is an integer,
the address of the head of a program.  A call uses a *record*: a frame of words, and arenas that
grow to the size of the largest call.  Records are taken from a list of the program and put back
while the interpreter's lock is held, so any number of threads may call one program, and a call
allocates nothing but its results.

An instruction that meets an unusual case leaves the program: the call goes to the fallback of the
head, with the same arguments.  The instructions before it have no visible effect.  If the user
interrupts a Python call that allocates memory, the interruption is raised; so is the
``MemoryError`` of a kernel that cannot allocate its scratch memory.
"""

from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import I32, I64, PTR, Module
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.runtime import driver_objects
from relax_egraph.lower.runtime.driver_instructions import Instructions
from relax_egraph.lower.runtime.driver_objects import (
    LIMIT,
    Arena,
    Head,
    Record,
    is_null,
    set_word,
    word,
)

SYMBOL, FORGET = "run", "forget"


def driver_module(target: Target) -> Module:
    """``PyObject *run(self, args, count, names)``, and ``void forget(head)``."""
    module = Module(target)
    driver_objects.define(module)
    f = Instructions(module, SYMBOL)
    itself, args, count, names = f.args
    null = f.const(PTR, 0)
    head = f.head = f.call_value("PyLong_AsVoidPtr", PTR, itself)
    wrong = f.compare("!=", count, word(head, Head.ARGUMENTS)) | f.compare("!=", names, null)
    f.go_if(wrong, "fallback")
    record = _take_record(f)
    f.frame = f.address(record, Record.FRAME, I64)
    f.store(word(head, Head.CODE, PTR), f.at)
    f.store(null, f.state)
    f.store(f.const(I64, 0), f.second)
    f.go("next")
    f.instructions()

    f.begin("refused")
    with f.when(f.compare("!=", f.load(f.state, PTR), null)):
        f.call("PyEval_RestoreThread", f.load(f.state, PTR))
    with f.when(f.compare("!=", f.call_value("PyErr_Occurred", PTR), null)):
        usual = f.call_value("PyErr_ExceptionMatches", I32, word(head, Head.EXCEPTION, PTR))
        with f.when(f.compare("!=", usual, 0)):
            f.call("PyErr_Clear")
    f.store(null, f.answer)
    f.go("leave")

    f.begin("exhausted")
    with f.when(f.compare("!=", f.load(f.state, PTR), null)):
        f.call("PyEval_RestoreThread", f.load(f.state, PTR))
    f.call_value("PyErr_NoMemory", PTR)
    f.store(null, f.answer)
    f.go("leave")

    f.begin("leave")
    _drop_objects(f)
    f.call("shrink_all", head, record, f.const(I64, LIMIT))
    set_word(record, Record.NEXT, word(head, Head.FREE))
    set_word(head, Head.FREE, record)
    f.go_if(f.compare("!=", f.load(f.answer, PTR), null), "done")
    interrupted = f.call_value("PyErr_Occurred", PTR)
    f.go_if(f.compare("!=", interrupted, null), "done")
    f.go("fallback")

    f.begin("fallback")
    fallback = word(head, Head.FALLBACK, PTR)
    with f.either(is_null(fallback)) as (none, some):
        with none:
            nothing = word(head, Head.NONE, PTR)
            f.call("Py_IncRef", nothing)
            f.store(nothing, f.answer)
        with some:
            result = f.call_value("PyObject_Vectorcall", PTR, fallback, args, count, names)
            f.store(result, f.answer)
    f.go("done")

    f.begin("done")
    f.finish(f.load(f.answer, PTR))
    return module


def _take_record(f: Instructions) -> Value:
    """A record that no other call uses."""
    free = word(f.head, Head.FREE, PTR)
    with f.either(is_null(free)) as (none, some):
        with none:
            f.store(f.call_value("new_record", PTR, f.head), f.answer)
        with some:
            set_word(f.head, Head.FREE, word(free, Record.NEXT))
            f.store(free, f.answer)
    record = f.load(f.answer, PTR)
    f.go_if(is_null(record), "fallback")
    return record


def _drop_objects(f: Instructions) -> None:
    """Release the objects of the call; the answer has a reference of its own."""
    count = word(f.head, Head.OBJECTS)
    end = word(f.head, Head.FRAME) - word(f.head, Head.ARENAS) * len(Arena)
    objects = f.address(f.frame, end - count, I64)
    with f.loop(0, count) as turns:
        item = word(objects, turns.index, PTR)
        with f.when(f.compare("!=", item, f.const(PTR, 0))):
            f.call("Py_DecRef", item)
            set_word(objects, turns.index, f.const(I64, 0))
