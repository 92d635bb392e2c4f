

# What follows was added to CPython's own commands. They read the variable `frame` of the interpreter's loop, which an
# optimising compiler keeps where gdb does not find it, and print "(unable to read python frame information)". The same
# frames hang on the thread's state, which the interpreter's one global variable leads to.
def _thread_state():
    """The state of the Python thread that the selected thread is, or None."""
    process, thread, _ = gdb.selected_thread().ptid
    interpreter = gdb.parse_and_eval("_PyRuntime.interpreters.head")
    while interpreter:
        state = interpreter["threads"]["head"]
        while state:
            if int(state["native_thread_id"]) == (thread or process):
                return state
            state = state["next"]
        interpreter = interpreter["next"]
    return None


def _frame_of_loop(loop):
    """The innermost Python frame of one of the interpreter's loops. Below its own, each has an empty one, the shim."""
    state = _thread_state()
    if state is None:
        return None
    frame = PyFramePtr(state["current_frame"])
    while loop := loop.newer():
        if loop.is_evalframe():  # entered later: Python called C, and that called Python
            while not frame.is_shim():
                frame = frame.previous()
            frame = frame.previous()
    return frame


Frame.get_pyop = lambda loop, variable=Frame.get_pyop: variable(loop) or _frame_of_loop(loop)
