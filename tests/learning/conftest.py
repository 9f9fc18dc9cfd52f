from tests.scenarios.conftest import one_thread, small

__all__ = ["one_thread", "small"]
