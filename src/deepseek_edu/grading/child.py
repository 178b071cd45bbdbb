"""The grader's child process: give up rights, load one submission, answer one case at a time.

Started as ``python -I -S child.py REQUEST_FD ANSWER_FD``. One JSON object per line comes in on the first and goes out
on the second. Each request carries a nonce that nobody can guess before it arrives, and its answer repeats it. No
expected value ever comes in here, and the next case comes only after the answer to the one before.
"""

import importlib.util
import json
import os
import sys


def _sibling(name):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _requests(handle):
    """Each line of the request channel, decoded."""
    rest = b""
    while True:
        chunk = os.read(handle, 65536)
        if not chunk:
            return
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield json.loads(line)


def _answer(handle, line):
    data = line.encode() + b"\n"
    while data:
        data = data[os.write(handle, data) :]


class _OnlyTheLibrary:
    """Explains why a package cannot be imported; placed last, it is asked only for what nobody found."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if path is None:
            raise ModuleNotFoundError(
                f"no module {name}: the standard library and numpy are available to a submission", name=name
            )
        return None


def main():
    """Serve requests until the channel closes."""
    requests, answers = int(sys.argv[1]), int(sys.argv[2])
    sys.dont_write_bytecode = True
    harness, isolation = _sibling("harness"), _sibling("isolation")
    landlock, seccomp, selection = _sibling("landlock"), _sibling("seccomp"), _sibling("selection")
    incoming = _requests(requests)
    setup = next(incoming)
    held = isolation.apply(setup["isolation"], landlock, seccomp)
    sys.path.append(setup["packages"])
    sys.meta_path.append(_OnlyTheLibrary)
    _answer(answers, json.dumps({"nonce": setup["nonce"], "status": "ready", "protections": held}))
    request = next(incoming)
    try:
        source = request["source"]
        if request["select"]:
            source = selection.keep_needed(source, request["functions"])
        namespace = harness.load_submission(source, request["functions"], partial=True)
    except harness.SubmissionError as error:
        _answer(
            answers, harness.dump_answer({"nonce": request["nonce"], "status": "refused", "error": error.as_dict()})
        )
        return
    _answer(answers, harness.dump_answer({"nonce": request["nonce"], "status": "loaded"}))
    for request in incoming:
        answer = harness.run_case(namespace, request["function"], request["args"])
        answer["nonce"] = request["nonce"]
        _answer(answers, harness.dump_answer(answer))


if __name__ == "__main__":
    main()
    os._exit(0)
