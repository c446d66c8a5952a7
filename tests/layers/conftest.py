"""What the tests of the layers need on each of Keras' backends."""

import keras
import pytest

BACKEND = keras.backend.backend()

# Files of tests that other backends are not for.
OF_TENSORFLOW = {
    "test_cudnn.py": "TensorFlow's alone: what goes to cuDNN in place of the engine",
    "test_fused.py": "TensorFlow's alone: the engine",
    "test_properties.py": "hundreds of shapes, which other backends compile one by one",
}


class Skipped(pytest.File):
    """A file that cannot be imported here, and is told of all the same."""

    def collect(self):
        pytest.skip(OF_TENSORFLOW[self.path.name])


def pytest_pycollect_makemodule(module_path, parent):
    """Skips the files that are about TensorFlow."""
    if BACKEND != "tensorflow" and module_path.name in OF_TENSORFLOW:
        return Skipped.from_parent(parent, path=module_path)


def pytest_configure(config):
    """Sets JAX up as the tests want it."""
    if BACKEND == "jax":
        import jax

        # JAX compiles a loop anew at every call outside of `jit`, unless it finds it here.
        jax.config.update("jax_compilation_cache_dir", str(config.cache.mkdir("jax")))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.02)


@pytest.fixture
def float64(monkeypatch):
    """Lets every backend compute in float64."""
    if BACKEND != "jax":
        yield
        return
    import jax
    from keras.src.backend.common import dtypes

    # Neither does JAX by itself, nor Keras on it, which makes every result float32.
    monkeypatch.setitem(dtypes.BIT64_TO_BIT32_DTYPE, "float64", "float64")
    with jax.enable_x64(True):
        yield


@pytest.fixture
def tf():
    """TensorFlow, for tests of what it alone has: graphs of any shape, strategies, SavedModels."""
    if BACKEND != "tensorflow":
        pytest.skip("about TensorFlow's own graphs, strategies or SavedModels")
    import tensorflow

    return tensorflow
