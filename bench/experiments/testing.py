"""Runs a module's tests for a --self-test."""
import io, sys, unittest


def run_tests(name, module):
    """The exit code; what failed goes to the terminal."""
    out = io.StringIO()
    result = unittest.TextTestRunner(stream=out).run(unittest.defaultTestLoader.loadTestsFromModule(module))
    if not result.wasSuccessful():
        print(out.getvalue(), file=sys.stderr)
    print(f"{name}: {result.testsRun} tests, {len(result.failures) + len(result.errors)} failed")
    return 0 if result.wasSuccessful() else 1
