"""What each backend of Keras does in its own way: gradients, and compiled functions."""

import keras
import numpy as np
import pytest

BACKEND = keras.backend.backend()


def some_of(cases, *places):
    """Marks the cases at other places to be skipped where the backend is not TensorFlow.

    Elsewhere layers have one implementation, the cell in a loop, and most of the time would go into
    compiling what differs in a number only.
    """
    cases = [case if hasattr(case, "marks") else _parameters(case) for case in cases]
    if BACKEND == "tensorflow":
        return cases
    chosen = {range(len(cases))[place] for place in places}
    skipped = pytest.mark.skip(reason="compiles long, and other cases are the same arithmetic")
    return [
        case if place in chosen else case._replace(marks=[*case.marks, skipped])
        for place, case in enumerate(cases)
    ]


def _parameters(case):
    return pytest.param(*case) if isinstance(case, tuple) else pytest.param(case)


def compiled(function):
    """Makes a function of tensors one that is compiled for each shape of its arguments."""
    if BACKEND == "jax":
        import jax

        return jax.jit(function)
    import tensorflow as tf

    return tf.function(function, autograph=False, reduce_retracing=True, jit_compile=True)


def with_gradients(function, variables=(), in_one_graph=False):
    """Makes a function of tensors tell its gradients too.

    Args:
        function: Takes float tensors; returns a scalar, or a tuple of a scalar and what else there
            is to see.
        variables: What it reads of Keras' variables, as far as their gradients are wanted.
        in_one_graph: Whether all is one graph, made once for all calls, which must then be alike.
            Default: `False`.

    Returns:
        A function of the same arguments. It returns what the function does, and the list of the
        gradients of the scalar: on each argument, and on each variable.
    """
    differentiated = _on_jax if BACKEND == "jax" else _on_tensorflow
    return differentiated(function, variables, in_one_graph)


def _on_tensorflow(function, variables, in_one_graph):
    import tensorflow as tf

    def run(*inputs):
        inputs = [tf.convert_to_tensor(value) for value in inputs]
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            results = function(*inputs)
        loss = results[0] if isinstance(results, tuple) else results
        return results, tape.gradient(loss, [*inputs, *(v.value for v in variables)])

    return tf.function(run) if in_one_graph else run


def _on_jax(function, variables, in_one_graph):
    import jax

    def stateless(inputs, values):
        with keras.StatelessScope(state_mapping=list(zip(variables, values, strict=True))):
            results = function(*inputs)
        return results[0] if isinstance(results, tuple) else results, results

    differentiate = jax.grad(stateless, argnums=(0, 1), has_aux=True)
    if in_one_graph:
        differentiate = jax.jit(differentiate)

    def run(*inputs):
        inputs = [keras.ops.convert_to_tensor(value) for value in inputs]
        gradients, results = differentiate(inputs, [variable.value for variable in variables])
        return results, [*gradients[0], *gradients[1]]

    return run


def assert_gradients(function, inputs, variables=(), step=1e-5, rtol=1e-6, atol=1e-8):
    """Compares gradients in float64 with finite differences, each along a random direction.

    Args:
        function: As for `with_gradients`, and so are the variables. It must be the same function at
            every call, dropout masks included.
        inputs: The arguments, float64 arrays.
        variables: As above; they keep their values.
        step: How far a difference goes to each side.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
    """
    rng = np.random.default_rng(1)
    run = with_gradients(function, variables, in_one_graph=True)
    points = [np.array(value) for value in (*inputs, *variables)]

    def at(points):
        for variable, value in zip(variables, points[len(inputs) :], strict=True):
            variable.assign(value)
        return run(*points[: len(inputs)])

    value, gradients = at(points)
    assert keras.backend.standardize_dtype(value.dtype) == "float64"
    for n, gradient in enumerate(gradients):
        direction = rng.normal(size=points[n].shape)
        above, below = (
            float(at([*points[:n], points[n] + side * direction, *points[n + 1 :]])[0])
            for side in (step, -step)
        )
        slope = np.sum(gradient * direction)
        message = f"of input {n}" if n < len(inputs) else f"of {variables[n - len(inputs)].path}"
        np.testing.assert_allclose(
            slope, (above - below) / (2 * step), rtol=rtol, atol=atol, err_msg=message
        )
    at(points)
